"""torch.cuda: names of the operator table."""

from gradcli.namespaces import filled

__getattr__, __dir__ = filled(__name__, "cuda")

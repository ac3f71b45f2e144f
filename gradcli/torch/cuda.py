"""torch.cuda: names of the operator table."""

from gradcli.engine.registry.torch_namespaces import filled

__getattr__, __dir__ = filled(__name__, "cuda")

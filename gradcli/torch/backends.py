"""torch.backends: what programs ask and set there. Nothing of it is used."""

from types import SimpleNamespace

from gradcli.engine.registry.torch_namespaces import filled

_cudnn, _ = filled(f"{__name__}.cudnn", "backends.cudnn")
_mps, _ = filled(f"{__name__}.mps", "backends.mps")
cudnn = SimpleNamespace(
    enabled=True, benchmark=False, deterministic=False, is_available=_cudnn("is_available")
)
mkldnn = SimpleNamespace(is_available=lambda: False, enabled=True)
mkl = openmp = SimpleNamespace(is_available=lambda: False)
mps = SimpleNamespace(is_available=_mps("is_available"), is_built=_mps("is_built"))

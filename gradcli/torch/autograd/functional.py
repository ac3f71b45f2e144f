"""torch.autograd.functional: products with Jacobians and Hessians."""

from gradcli.transforms.autograd_functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

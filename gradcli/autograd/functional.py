"""torch.autograd.functional: products with Jacobians and Hessians."""

from gradcli.calculus.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

"""grad, vjp, jvp, vmap, jacobian, hessian, gradcheck: each once, over levels."""

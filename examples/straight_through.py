"""A custom operation: rounds on the way forward, and lets gradients through as if it had not."""

import gradcli as torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x)
        ctx.step = step
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inside = (x.abs() <= 1).to(grad.dtype)  # outside of [-1, 1] nothing passes
        return grad * inside, None


def quantized(x, bits=3):
    return Round.apply(x, 2.0 ** -(bits - 1))

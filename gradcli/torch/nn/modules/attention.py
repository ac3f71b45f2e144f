"""Attention with several heads, and the layers of transformers (Vaswani et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.torch.nn import functional, init
from gradcli.torch.nn.modules import plain_layers
from gradcli.torch.nn.modules.containers import ModuleList
from gradcli.torch.nn.modules.layers import CLASSES as LAYERS
from gradcli.torch.nn.modules.layers import Linear as _Linear
from gradcli.torch.nn.modules.layers import parameter
from gradcli.torch.nn.modules.module import Module

Dropout: Any = plain_layers.CLASSES["Dropout"]
Linear: Any = LAYERS["Linear"]
LayerNorm: Any = LAYERS["LayerNorm"]


class NonDynamicallyQuantizableLinear(_Linear):
    """A Linear under the name that PyTorch shows for the last one of an attention."""


_Last: Any = NonDynamicallyQuantizableLinear


class MultiheadAttention(Module):
    """Attention in several heads. Without batch_first, inputs are (steps, batch, embed_dim)."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.head_dim = embed_dim // num_heads
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        joint = self._qkv_same_embed_dim
        sizes = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        for name, size in sizes.items():
            value = None if joint else parameter(embed_dim, size, dtype=dtype)
            self.register_parameter(f"{name}_proj_weight", value)
        value = parameter(3 * embed_dim, embed_dim, dtype=dtype) if joint else None
        self.register_parameter("in_proj_weight", value)
        value = parameter(3 * embed_dim, dtype=dtype) if bias else None
        self.register_parameter("in_proj_bias", value)
        self.out_proj = _Last(embed_dim, embed_dim, bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            value = parameter(1, 1, embed_dim, dtype=dtype) if add_bias_kv else None
            self.register_parameter(name, value)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for value in (self.bias_k, self.bias_v):
            if value is not None:
                init.xavier_normal_(value)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        """(the result, the weights of attention or None)."""
        turned = self.batch_first and query.ndim == 3
        if turned:
            # One tensor stays one: attention of a sequence to itself is one product.
            made = {id(x): x.transpose(1, 0) for x in (query, key, value)}
            query, key, value = (made[id(x)] for x in (query, key, value))
        found, weights = functional.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (found.transpose(1, 0) if turned else found), weights


def _activation(given: Any) -> Callable[[Any], Any]:
    if not isinstance(given, str):
        return given  # type: ignore[no-any-return]
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(functional, given)  # type: ignore[no-any-return]


class _TransformerLayer(Module):
    """What layers of encoders and decoders share: attention, two linear layers, norms, dropout."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for k in parts:
            self.add_module(f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for k in parts:
            self.add_module(f"dropout{k}", Dropout(dropout))
        self.activation = _activation(activation)

    def _around(self, x: Any, k: int, part: Callable[[Any], Any]) -> Any:
        """x and what a part makes of it, normalised before the part or after the sum."""
        norm, dropout = self._modules[f"norm{k}"], self._modules[f"dropout{k}"]
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention, then two linear layers."""

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask,
                need_weights=False, is_causal=is_causal,
            )[0]  # fmt: skip

        return self._around(self._around(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to an encoder's result, then two linear layers."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                is_causal=tgt_is_causal, need_weights=False,
            )[0]  # fmt: skip

        def look(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask, is_causal=memory_is_causal,
                key_padding_mask=memory_key_padding_mask, need_weights=False,
            )[0]  # fmt: skip

        x = self._around(self._around(tgt, 1, attend), 2, look)
        return self._around(x, 3, self._feed_forward)


class TransformerEncoder(Module):
    """Copies of a layer, one after the other."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a layer, one after the other."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Any, memory: Any, *masks: Any, **named: Any) -> Any:
        named = {k: bool(v) if k.endswith("causal") else v for k, v in named.items()}
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Vaswani et al. (2017): an encoder, and a decoder that looks at what it gives."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()

        def stack(whole: Any, layer: Any, count: int) -> Any:
            options = dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
            made = layer(d_model, nhead, *options, bias, dtype=dtype)
            return whole(made, count, LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        for value in self.parameters():
            if value.ndim > 1:
                init.xavier_uniform_(value)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if not src.shape[-1] == tgt.shape[-1] == self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """A matrix of -inf above the diagonal and 0 below it, to be added to scores."""
        return resolve("full")((sz, sz), float("-inf"), dtype=dtype).triu(1)


CLASSES = {
    c.__name__: c
    for c in (
        MultiheadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
        TransformerEncoderLayer,
    )
}  # fmt: skip

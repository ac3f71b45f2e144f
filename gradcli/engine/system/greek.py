"""Letters that LaTeX has as commands: what programs write as a letter, and LaTeX as a word."""

from __future__ import annotations

_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega "
    "vartheta phi varpi varrho varsigma epsilon partial nabla infty ell hbar"
)
# By letter; omicron and the capitals that look like Latin letters are these.
COMMANDS = {
    **dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩϑϕϖϱςϵ∂∇∞ℓℏ", _NAMES.split(), strict=True)),
    "µ": "mu",  # the micro sign, which keyboards have
}
LATIN = dict(zip("οΑΒΕΖΗΙΚΜΝΟΡΤΧ", "oABEZHIKMNOPTX", strict=True))


__all__ = ["COMMANDS", "LATIN"]

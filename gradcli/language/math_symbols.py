r"""What the signs and words of mathematics mean, as tables: for the tokens and for the reader."""

from __future__ import annotations

# Other ways to write a sign. What is a word is a command or, if it is in WORDS, a name.
SIGNS = {
    **dict.fromkeys(("·", "⋅", "∙", "•", "cdot", "bullet"), "·"), **dict.fromkeys(("×", "times"), "×"),
    "^": "**", **dict.fromkeys(("∗", "ast", "star", "⋆"), "*"),
    ".^": ".^", "⊙": "⊙", "∘": "⊙", ".*": "⊙", "odot": "⊙",
    "circ": "⊙", "./": "⊘", "oslash": "⊘", **dict.fromkeys(("⊗", "otimes"), "⊗"),
    "&&": "and", "∧": "and", "∨": "or", "¬": "not", "land": "and", "lor": "or", "wedge": "and", "vee": "or",
    "lnot": "not", "neg": "not", "∛": "cbrt", **dict.fromkeys(("÷", "∕", "⁄", "div"), "/"),
    **dict.fromkeys("−–", "-"), "||": "‖", "\\|": "‖",
    **dict.fromkeys(("lVert", "rVert", "Vert"), "‖"),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    **dict.fromkeys(("le", "leq", "≤", "leqslant"), "<="),
    **dict.fromkeys(("ge", "geq", "≥", "geqslant"), ">="), "lt": "<", "gt": ">",
    **dict.fromkeys(("ne", "neq", "≠"), "!="), "∑": "sum", "∏": "prod", "prime": "'", "′": "'",
    "\\{": "(", "\\}": ")", **dict.fromkeys(("lbrace", "lparen"), "("),
    **dict.fromkeys(("rbrace", "rparen"), ")"), "lbrack": "[", "rbrack": "]",
    **dict.fromkeys(("top", "intercal", "⊤"), "T"), "√": "sqrt",
    **dict.fromkeys(("tfrac", "dfrac", "cfrac"), "frac"),
    **dict.fromkeys(("tbinom", "dbinom"), "binom"), "∂": "partial", "∇": "nabla", "∫": "int",
    **dict.fromkeys(("lfloor", "⌊"), "⌊"), **dict.fromkeys(("rfloor", "⌋"), "⌋"),
    **dict.fromkeys(("lceil", "⌈"), "⌈"), **dict.fromkeys(("rceil", "⌉"), "⌉"),
    **dict.fromkeys(("langle", "⟨", "〈"), "⟨"), **dict.fromkeys(("rangle", "⟩", "〉"), "⟩"),
    "infty": "∞", "degree": "°", "to": "→", "\\%": "percent", "colon": ":",
    **dict.fromkeys(("rightarrow", "longrightarrow"), "→"),
    **dict.fromkeys(("coloneqq", "triangleq", "equiv", "≡", "≔", "doteq", "≜"), "="),
    **dict.fromkeys(("approx", "simeq", "≈", "≃", "cong"), "≈"),
    **dict.fromkeys(("leftarrow", "gets", "←", "longleftarrow"), "←"),
    **dict.fromkeys(("implies", "iff", "Leftrightarrow", "Rightarrow", "⇒", "⇔", "therefore"), "⇒"),
    "in": "∈", "pm": "±", "mp": "±", "exponentialE": "e",
}  # fmt: skip
WORDS = frozenset(("T", "and", "or", "not", "∞", "percent"))  # of these, those that are names
FONTS = frozenset(
    """mathrm mathbf mathit text operatorname boldsymbol pmb bm mbox mathsf vec textbf textrm symbf mathnormal
    mathcal mathscr mathfrak mathbb mathds mathbbm""".split()
)
SYMBOLS = frozenset(("hbar", "ell"))  # letters that LaTeX has beside the Greek ones
SCRIPTS = frozenset("mathcal mathscr mathfrak".split())  # of letters that are names of their own
BOLD = frozenset("mathbf boldsymbol pmb bm vec textbf symbf".split())  # of vectors and matrices
# Commands that only put space, or say how large a sign is.
SPACES = (
    r"displaystyle|textstyle|limits|nolimits|q?quad|thinspace|medspace|thickspace|negthinspace|"
    r"negmedspace|negthickspace|enspace|enskip|nonumber|notag"
)
ACCENTS = {
    "hat": "hat", "widehat": "hat", "tilde": "tilde", "widetilde": "tilde", "dot": "dot", "ddot": "ddot",
    "check": "check", "breve": "breve",
}  # fmt: skip
MATRICES = frozenset("matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix array".split())
CASES = frozenset(("cases", "dcases", "rcases"))
OTHERWISE = frozenset(("otherwise", "else", "sonst", "elsewhere"))

# Below a line these say what a thing is, and are no two indices.
INDEX_WORDS = frozenset(
    """in out max min eff ref tot kin pot ext int rms abs rel id is on if el mol ms hat dot ddot bar cal
    vec cm ac dc ex""".split()
)
# Functions whose argument may follow without brackets. A variable may have any other function's name.
BARE = frozenset(
    """sin cos tan cot sec csc cotan cosec sinh cosh tanh coth sech csch asin acos atan acot asec acsc arcsin
    arccos arctan arccot arcsec arccsc asinh acosh atanh acoth asech acsch arcsinh arccosh arctanh arcoth
    arccoth arcsech arccsch arsinh arcosh artanh arsech arcsch exp expm1 log log2 log10 log1p ln lg lb ld
    sqrt cbrt abs sign sgn signum erf erfc erfinv floor ceil ceiling round trunc frac sigmoid logistic expit
    logit relu softplus softmax log_softmax logsigmoid silu gelu elu selu mish softsign sinc lgamma gammaln
    digamma tr Tr trace det logdet diag vec rank tg ctg sh ch th max min sum prod mean median std var norm
    argmax argmin real imag conj Re Im arg deg2rad rad2deg logsumexp""".split()
)
# Names of variables that people give to things, though a function of this name takes its argument bare.
SHY = frozenset(
    """sum prod mean median std var norm rank vec frac arg round real imag sh ch th ld lb max min floor ceil
    gelu elu""".split()
)
# Functions that a text may define itself, as `\\mathrm{softmax}(z)_i = …` does.
DEFINABLE = frozenset(
    """sigmoid logistic expit relu softplus softmax log_softmax logsigmoid silu gelu elu selu mish softsign
    logsumexp""".split()
)
INVERSES = frozenset(
    "sin cos tan sinh cosh tanh cot sec csc coth sech csch".split()  # sin^-1 is asin
)
# What is a number, whatever it is of.
NUMBERS = frozenset(
    """tr Tr trace det logdet sum mean dot norm prod linalg.norm median std var max min amax amin argmax
    argmin linalg.det linalg.trace len vdot inner""".split()
)
# Of these, what nobody takes of a number.
OF_ARRAYS = frozenset("tr Tr trace det logdet norm linalg.norm linalg.det linalg.trace".split())
# Functions along a dimension, and the last one as their argument.
ALONG = {**dict.fromkeys(("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logsumexp"), "-1"),
         "flip": "(-1,)"}  # fmt: skip
# What is a matrix, or a vector, where the argument is one or the other.
SWAPS = frozenset(("diag", "diagonal", "diag_embed"))
# Matrices have these functions besides the one of each element: exp(A) is asked.
OF_MATRICES = frozenset("exp log sqrt sin cos tan sinh cosh ln cbrt".split())
# Functions of matrices that give one.
MATRIX_VALUED = frozenset(
    """linalg.inv linalg.pinv linalg.matrix_exp matrix_exp linalg.matrix_power matrix_power inverse inv pinv
    outer kron eye triu tril linalg.cholesky cholesky linalg.solve cov corrcoef diag_embed""".split()
)
RENAMED = {
    "sgn": "sign", "arcoth": "acoth", "arccoth": "acoth", "Re": "real", "Im": "imag", "arg": "angle",
    "arsech": "asech", "arcsch": "acsch", "arcsech": "asech", "arccsch": "acsch", "logit": "logit",
}  # fmt: skip
# Functions whose prime is a derivative: of `\\sigma'(W x)`.
PRIMED = frozenset("sigma σ f g phi φ ϕ varphi tanh relu ReLU sigmoid softplus".split())
RELATIONS = frozenset(("=", "==", "<", ">", "<=", ">=", "!="))

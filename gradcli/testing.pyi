"""What type checkers see of `gradcli.testing`, which is `gradcli.torch.testing`."""

from typing import Any

from gradcli.transforms.assertions import GradientMismatch as GradientMismatch
from gradcli.transforms.assertions import GradientTrouble as GradientTrouble
from gradcli.transforms.assertions import assert_finite_gradients as assert_finite_gradients
from gradcli.transforms.assertions import assert_gradients as assert_gradients
from gradcli.transforms.assertions import assert_no_exploding as assert_no_exploding
from gradcli.transforms.assertions import assert_no_vanishing as assert_no_vanishing
from gradcli.transforms.point_strategies import points as points

def assert_close(actual: Any, expected: Any, **kwargs: Any) -> None: ...

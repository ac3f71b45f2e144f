"""The kinds of rows a tree is made of, and how the grammar's rules write them.

A tree is a flat list of rows in post-order: (kind, operand, start, end). The children of a row are the
subtrees that stand just before it, so a walk needs no links and no recursion, and a tree without control
flow can be run from front to back with a stack of values.
"""

from __future__ import annotations

from functools import cache

# The tree of `2*x + f(y)`, a line for each row. The operand of a constant or name is a place in the
# program's lists of them, that of a call the number of arguments. To run it, one goes from the top to the
# bottom: names and constants are put on a stack, and each other row takes as many values as it has
# children.
#
#     0 constant 2   [0:1]         5 call 1       [6:10]
#     1 name x       [2:3]         6 add          [0:10]
#     2 mul          [0:3]         7 expression   [0:10]
#     3 name f       [6:7]         8 block 1      [0:10]
#     4 name y       [8:9]
#
# How many children a row has: a number, or one of the codes below.
COUNTED = -1  # operand
COUNTED_PLUS_1 = -2  # operand + 1
COUNTED_PLUS_2 = -3  # operand + 2
COUNTED_PLUS_3 = -4  # operand + 3
BITS = -9  # the number of bits set in the operand

BINARY = ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "matmul", "bitor", "bitand")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "is", "is_not", "in", "not_in")

_STRAIGHT: list[tuple[str, int]] = [
    ("none", 0),
    ("name", 0),
    ("constant", 0),
    *((name, 2) for name in BINARY),
    *((name, 2) for name in COMPARISONS),
    ("neg", 1),
    ("pos", 1),
    ("invert", 1),
    ("not", 1),
    ("attribute", 1),
    ("call", COUNTED_PLUS_1),
    ("call_keywords", COUNTED_PLUS_1),
    ("keyword_name", 0),
    ("keyword", 2),
    ("subscript", 2),
    ("slice", BITS),
    ("tuple", COUNTED),
    ("list", COUNTED),
    ("dict", COUNTED),
    ("pair", 2),
    ("starred", 1),
    ("double_starred", 1),
    ("target", 0),
    ("target_tuple", COUNTED),
    ("joined", COUNTED),
    ("format", 1),
    ("format_spec", 2),
    ("convert", 1),
    ("concatenate", 2),
    ("expression", 1),
    ("walrus", 2),
    ("assign", COUNTED_PLUS_1),
    ("pass", 0),
    ("module", 0),
    ("import_module", 1),
    ("import_module_as", 2),
    ("import", COUNTED),
    ("import_from", COUNTED_PLUS_1),
    ("block", COUNTED),
]
_CONTROL: list[tuple[str, int]] = [
    ("and", COUNTED),
    ("or", COUNTED),
    ("conditional", 3),
    *((f"chain_{name}", 2) for name in COMPARISONS),
    ("target_attribute", 1),
    ("target_subscript", 2),
    *((f"{name}_assign", 2) for name in BINARY),
    ("parameter", 0),
    ("parameter_default", 2),
    ("keyword_mark", 0),
    ("annotated", 2),
    ("annotated_default", 3),
    ("clause", COUNTED_PLUS_2),
    ("list_comprehension", COUNTED_PLUS_1),
    ("dict_comprehension", COUNTED_PLUS_1),
    ("generator", COUNTED_PLUS_1),
    ("lambda", COUNTED_PLUS_1),
    ("function", COUNTED_PLUS_2),
    ("function_annotated", COUNTED_PLUS_3),
    ("decorated", 2),
    ("return", 1),
    ("return_nothing", 0),
    ("if", 2),
    ("if_else", 3),
    ("while", 2),
    ("for", 3),
    ("break", 0),
    ("continue", 0),
    ("assert", 1),
    ("assert_message", 2),
    ("with_item", 1),
    ("with_item_as", 2),
    ("with", COUNTED_PLUS_1),
    ("except_all", 1),
    ("except", 2),
    ("except_as", 3),
    ("try", COUNTED_PLUS_1),
]
KINDS: tuple[str, ...] = tuple(name for name, _ in _STRAIGHT + _CONTROL)
ARITY: tuple[int, ...] = tuple(arity for _, arity in _STRAIGHT + _CONTROL)
KIND: dict[str, int] = {name: number for number, name in enumerate(KINDS)}
CONTROL = len(_STRAIGHT)  # rows of this kind and above need jumps: see `lowering.py`

# What programs that jump have beside the kinds of straight rows: see `lowering.py`.
(
    JUMP,
    JUMP_BACK,
    JUMP_IF_FALSE,
    AND_JUMP,
    OR_JUMP,
    CHAIN,
    POP,
    STORE,
    STORE_ATTRIBUTE,
    STORE_SUBSCRIPT,
    STORE_ATTRIBUTE_BELOW,
    STORE_SUBSCRIPT_BELOW,
    UNPACK,
    DUPLICATE,
    DUPLICATE_TWO,
    INPLACE,
    MAKE_FUNCTION,
    RETURN,
    GET_ITERATOR,
    FOR_NEXT,
    ASSERT_FAILED,
    WITH_ENTER,
    WITH_EXIT,
    TRY_PUSH,
    TRY_POP,
    MATCH,
    RAISE_AGAIN,
    LOAD_LOCAL,
    LOAD_OUTER,
    DELETE,
    COMPREHEND,
    COLLECT,
) = range(128, 160)

NAME = KIND["name"]
CONSTANT = KIND["constant"]


# What a rule of the grammar does when it is reduced.
KEEP = 0  # nothing
EMIT = 1  # write a row with a fixed operand
TOKEN = 2  # write a row whose operand is the last token's index
COUNT = 3  # write a row whose operand is the length of the list that ends here, plus a number
ONE = 4  # begin a list of the length given
MORE = 5  # one more in the list
JOIN = 6  # the list that ends here is appended to the list before it
TARGET = 7  # the expression that ends here is assigned to: write nothing, remember where
TARGET_TUPLE = 8  # the same for a list of expressions, whose row is written first


@cache
def aliases() -> dict[str, tuple[int, int, int]]:
    """Alias in the grammar -> (what is done, kind of the row, a number)."""
    same = (
        *(
            "not",
            "and",
            "or",
            "is",
            "in",
            "pass",
            "break",
            "continue",
            "return",
            "assert",
            "import",
        ),
        *("lambda", "if", "while", "for", "with", "try", "except"),
    )
    table: dict[str, tuple[int, int, int]] = {
        "keep": (KEEP, 0, 0),
        "count_zero": (ONE, 0, 0),
        "count_one": (ONE, 0, 1),
        "count_two": (ONE, 0, 2),
        "count_more": (MORE, 0, 0),
        "count_join": (JOIN, 0, 0),
        "name": (TOKEN, NAME, 0),
        "constant": (TOKEN, CONSTANT, 0),
        "attribute": (TOKEN, KIND["attribute"], 0),
        "convert": (TOKEN, KIND["convert"], 0),
        "module": (TOKEN, KIND["module"], 0),
        "parameter": (TOKEN, KIND["parameter"], 0),
        "target_name": (TOKEN, KIND["target"], 0),
        "keyword_name": (TOKEN, KIND["keyword_name"], 0),
        "target": (TARGET, 0, 0),
        "target_tuple": (TARGET_TUPLE, KIND["target_tuple"], 1),
        "loop_tuple": (COUNT, KIND["target_tuple"], 0),
        "loop_tuple_last": (COUNT, KIND["target_tuple"], 1),
        "program": (COUNT, KIND["block"], 0),
        "program_empty": (EMIT, KIND["block"], 0),
        "tuple_last": (COUNT, KIND["tuple"], 1),
        "tuple_empty": (EMIT, KIND["tuple"], 0),
        "list_last": (COUNT, KIND["list"], 1),
        "list_empty": (EMIT, KIND["list"], 0),
        "list_one": (EMIT, KIND["list"], 1),
        "dict_empty": (EMIT, KIND["dict"], 0),
        "clause_alone": (EMIT, KIND["clause"], 0),
        "call_none": (EMIT, KIND["call"], 0),
        "call_one": (EMIT, KIND["call"], 1),
    }
    for mask in range(8):
        table[f"slice{mask}"] = (EMIT, KIND["slice"], mask)
    for number, name in enumerate(KINDS):
        alias = f"{name}_" if name in same else name
        action = COUNT if COUNTED_PLUS_3 <= ARITY[number] <= COUNTED else EMIT
        table.setdefault(alias, (action, number, 0))
    return table

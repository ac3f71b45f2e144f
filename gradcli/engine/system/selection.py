"""Selection with PyTorch's choice among equal elements.

`median`, `kthvalue`, `topk` and `mode` return an index, which receives the gradient. Among equal elements
the index depends on the algorithm: libstdc++'s nth_element, partial_sort and sort, and PyTorch's quick
select. They are reproduced here and run if there are ties; otherwise any sort gives the same index. All
work in place on a list of positions, with a function that compares two positions.
"""

from __future__ import annotations

from collections.abc import Callable

Less = Callable[[int, int], bool]
_THRESHOLD = 16  # libstdc++ leaves shorter ranges to insertion sort


def nth_element(a: list[int], nth: int, less: Less) -> None:
    """std::nth_element: put the item of the sorted order at a[nth], and smaller ones before it."""
    first, last = 0, len(a)
    if nth >= last:
        return
    depth = 2 * (last.bit_length() - 1)
    while last - first > 3:
        if depth == 0:
            _heap_select(a, first, nth + 1, last, less)
            a[first], a[nth] = a[nth], a[first]
            return
        depth -= 1
        cut = _partition(a, first, last, less)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(a, first, last, less)


def sort(a: list[int], last: int, less: Less) -> None:
    """std::sort of the first `last` items."""
    if last < 2:
        return
    ranges = [(0, last, 2 * (last.bit_length() - 1))]
    while ranges:
        first, end, depth = ranges.pop()
        while end - first > _THRESHOLD:
            if depth == 0:
                partial_sort(a, first, end, end, less)
                break
            depth -= 1
            cut = _partition(a, first, end, less)
            ranges.append((cut, end, depth))
            end = cut
    _insertion_sort(a, 0, min(last, _THRESHOLD), less)
    for i in range(_THRESHOLD, last):
        _insert(a, i, less)


def partial_sort(a: list[int], first: int, middle: int, last: int, less: Less) -> None:
    """std::partial_sort: sort the smallest items of a[first:last] into a[first:middle]."""
    _heap_select(a, first, middle, last, less)
    while middle - first > 1:
        middle -= 1
        _pop_heap(a, first, middle, middle, less)


def quick_select(a: list[int], k: int, greater: Less) -> None:
    """PyTorch's quick_select_template: put the item of the sorted order at a[k]."""
    left, right = 0, len(a) - 1
    while right > left:
        if right == left + 1:
            if greater(a[left], a[right]):
                a[left], a[right] = a[right], a[left]
            return
        middle = left + (right - left) // 2
        a[middle], a[left + 1] = a[left + 1], a[middle]
        for x, y in ((left + 1, right), (left, right), (left + 1, left)):
            if greater(a[x], a[y]):
                a[x], a[y] = a[y], a[x]
        i, j, pivot = left + 1, right, a[left]
        while True:
            i += 1
            while greater(pivot, a[i]):
                i += 1
            j -= 1
            while greater(a[j], pivot):
                j -= 1
            if j < i:
                break
            a[i], a[j] = a[j], a[i]
        a[left], a[j] = a[j], a[left]
        if j <= k:
            left = i
        if j >= k:
            right = j - 1


# -- the parts of libstdc++ -----------------------------------------------------------------------
def _partition(a: list[int], first: int, last: int, less: Less) -> int:
    """Partition around the median of three, which is put first; returns the start of the right part."""
    x, y, z = first + 1, first + (last - first) // 2, last - 1
    if less(a[x], a[y]):
        median = y if less(a[y], a[z]) else z if less(a[x], a[z]) else x
    elif less(a[x], a[z]):
        median = x
    else:
        median = z if less(a[y], a[z]) else y
    a[first], a[median] = a[median], a[first]
    pivot, i, j = a[first], first + 1, last
    while True:
        while less(a[i], pivot):
            i += 1
        j -= 1
        while less(pivot, a[j]):
            j -= 1
        if i >= j:
            return i
        a[i], a[j] = a[j], a[i]
        i += 1


def _insert(a: list[int], i: int, less: Less) -> None:
    value = a[i]
    while less(value, a[i - 1]):
        a[i] = a[i - 1]
        i -= 1
    a[i] = value


def _insertion_sort(a: list[int], first: int, last: int, less: Less) -> None:
    for i in range(first + 1, last):
        if less(a[i], a[first]):
            a.insert(first, a.pop(i))
        else:
            _insert(a, i, less)


def _sift(a: list[int], first: int, hole: int, size: int, value: int, less: Less) -> None:
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if less(a[first + child], a[first + child - 1]):
            child -= 1
        a[first + hole] = a[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        a[first + hole] = a[first + child - 1]
        hole = child - 1
    while hole > top and less(a[first + (hole - 1) // 2], value):
        a[first + hole] = a[first + (hole - 1) // 2]
        hole = (hole - 1) // 2
    a[first + hole] = value


def _pop_heap(a: list[int], first: int, last: int, result: int, less: Less) -> None:
    value = a[result]
    a[result] = a[first]
    _sift(a, first, 0, last - first, value, less)


def _heap_select(a: list[int], first: int, middle: int, last: int, less: Less) -> None:
    size = middle - first
    for parent in reversed(range(size // 2)):
        _sift(a, first, parent, size, a[first + parent], less)
    for i in range(middle, last):
        if less(a[i], a[first]):
            _pop_heap(a, first, middle, i, less)

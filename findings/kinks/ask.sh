# What the kinks_*.sh scripts have in common: an environment of the packages in a folder of its own, and the comparison.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# with PACKAGE…: an environment at $work/venv, and asking.py beside the questions that are to be written there.
with() {
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet "$@"
    cp "$(dirname "${BASH_SOURCE[0]}")/asking.py" "$work"
}

# as_with NAME: ask the questions of $work/questions.py, show the answers, and fail where they differ from $work/expected.
as_with() {
    (cd "$work" && venv/bin/python questions.py 2> errors) > "$work/said" || true
    sed -n "s/$(printf '\t')/: /p" "$work/said" > "$work/seen"
    cat "$work/seen"
    if diff "$work/expected" "$work/seen" > "$work/changed"; then
        echo "as with $1"
    else
        echo "changed since $1 (<: then, >: now):"
        cat "$work/changed"
        return 1
    fi
}

#!/usr/bin/env bash
# scikit-rf: the Y and H parameters of a Touchstone file are off by factors of 50 and 2,500; its Z parameters are right.
#
# Guess: in Touchstone files of version 1 all but S is normalised to the reference resistance R: Z is divided by it, Y is
# multiplied by it, and of H and G the ratios of currents and of voltages (h21, h12) have no unit and stay. A reader undoes
# that for each. A load of 50 ohm is z = 1 or y = 1 in a file with R 50, and reflects nothing.
# Seen with scikit-rf 2.2.0: every kind is multiplied by R. The load given by z = 1 has s11 = 0; given by y = 1 it
# has s11 = -0.9992, all but a short circuit, for 50 siemens were read in place of 0.02. A current gain of 0.25 in an
# H file is read as 12.5. Nothing is said, and |s11| < 1 looks sound. Files that say [Version] 2.0 are not normalised, and right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "scikit-rf==${SKRF:-2.2.0}" numpy==2.4.6 scipy==1.17.1
cat > "$work/ask.py" <<'PY'
import sys

import skrf

folder = sys.argv[1]


def read(name, text):
    with open(f"{folder}/{name}", "w") as file:
        file.write(text)
    return skrf.Network(f"{folder}/{name}")


for kind in "ZY":
    load = read(f"load_{kind}.s1p", f"# GHZ {kind} RI R 50\n1.0  1.0 0.0\n")
    reflected, admittance = load.s[0, 0, 0].real, load.y[0, 0, 0].real
    print(f"{kind} = 1, R 50: s11 = {reflected + 0.0:.4f}, {admittance:.4g} siemens")
two = read("two.s2p", "# GHZ H RI R 50\n1.0  0.5 0  0.25 0  0.125 0  0.75 0\n")
print(f"h21 = 0.25, R 50: {two.h[0, 1, 0].real:.4g}")
KEYWORDS = """[Version] 2.0
# GHZ Y RI R 50
[Number of Ports] 1
[Number of Frequencies] 1
[Network Data]
1.0  0.02 0.0
[End]
"""
print(f"Y = 0.02, version 2.0: {read('load.ts', KEYWORDS).y[0, 0, 0].real:.4g} siemens")
PY
"$work/venv/bin/python" "$work/ask.py" "$work" 2> "$work/errors" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
Z = 1, R 50: s11 = 0.0000, 0.02 siemens
Y = 1, R 50: s11 = -0.9992, 50 siemens
h21 = 0.25, R 50: 12.5
Y = 0.02, version 2.0: 0.02 siemens
SEEN
echo "as it was seen"

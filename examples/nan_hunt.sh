#!/bin/sh
# A gradient is NaN although the value is fine. Where does it come from?
model="r = x**2; safe = where(r > 0, sqrt(r), 0*r); sum(safe)"
gradcli eval "$model" --x 3,0
gradcli grad "$model" --x 3,0
gradcli grad "$model" --x 3,0 --detect-anomaly
echo "exit code $?"
# The branch that is not taken divides by zero, and 0 * inf is NaN: keep zero out of it.
gradcli grad "r = x**2; safe = where(r > 0, sqrt(where(r > 0, r, 1.0)), 0*r); sum(safe)" --x 3,0

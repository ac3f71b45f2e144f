#!/bin/sh
# A Function of your own, written in Python, used in expressions.
gradcli eval "quantized(x)" --load straight_through.py --x=-1.6,-0.3,0.1,0.9
gradcli grad "sum(quantized(x)**2)" --load straight_through.py --x=-1.6,-0.3,0.1,0.9
gradcli graph "sum(quantized(x)**2)" --load straight_through.py --x=-1.6,-0.3,0.1,0.9 --saved

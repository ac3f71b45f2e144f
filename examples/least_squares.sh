#!/bin/sh
# Fit y = a*x + b by gradient descent: the whole training loop is shell.
x=0,1,2,3,4  y=1.1,2.9,5.2,6.8,9.1  p=0,0
for step in $(seq 40); do
    g=$(gradcli grad "mean((p[0]*x + p[1] - y)**2)" --wrt p --p="$p" --x $x --y $y --plain | cut -f2)
    p=$(gradcli eval "p - 0.12*g" --p="$p" --g="$g" --plain)
done
echo "a, b = $(gradcli eval "p" --p="$p" --precision 3)"
echo "best = $(gradcli eval "linalg.lstsq(stack([x, ones_like(x)], dim=1), y[:, None]).solution[:, 0]" --x $x --y $y --precision 3)"

#!/bin/sh
# Fit y = a*x + b by gradient descent: the training loop is ten lines of shell.
x=-2,-1,0,1,2  y=1.1,2.9,5.2,6.8,9.1  p=0,0
loss="mean((p[0]*x + p[1] - y)**2)"
for step in 1 2 3 4 5 6 7 8; do
    g=$(gradcli grad "$loss" --wrt p --p="$p" --x=$x --y $y --plain | cut -f2)
    p=$(gradcli eval "p - 0.3*g" --p="$p" --g="$g" --plain)
    echo "step $step: a, b = $(gradcli eval p --p="$p" --precision 4)"
done
echo "exactly:      $(gradcli eval "linalg.lstsq(stack([x, ones(5)], dim=1), y[:, None])[0].T[0]" --x=$x --y $y --precision 4)"

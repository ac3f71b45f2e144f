#!/bin/sh
# Newton's method on Rosenbrock's valley: solve H s = g, step, repeat.
valley="(1 - x[0])**2 + 100*(x[1] - x[0]**2)**2"
x=-1.2,1
for step in 1 2 3 4 5 6; do
    g=$(gradcli grad "$valley" --x="$x" --plain | cut -f2)
    H=$(gradcli hessian "$valley" --x="$x" --plain | cut -f2)
    x=$(gradcli eval "x - linalg.solve(H, g)" --x="$x" --H="$H" --g="$g" --plain)
    echo "$step  f = $(gradcli eval "$valley" --x="$x" --precision 3)  x = $(gradcli eval x --x="$x" --precision 6)"
done

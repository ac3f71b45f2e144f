#!/bin/sh
# g from a pendulum, g = 4 pi^2 L / T^2: how much do the errors of L and T matter?
#   L = (0.994 +- 0.002) m     T = (2.003 +- 0.005) s
formula="4*pi**2*L/T**2"
g=$(gradcli eval "$formula" --L 0.994 --T 2.003 --plain)
gradcli grad "$formula" --L 0.994 --T 2.003 --json |
    jq -r '"dg/dL = \(.grads.L.grad)", "dg/dT = \(.grads.T.grad)"'
slopes=$(gradcli grad "$formula" --L 0.994 --T 2.003 --plain | cut -f2 | paste -sd,)
sigma=$(gradcli eval "norm(slopes*errors)" --slopes="$slopes" --errors 0.002,0.005 --plain)
printf 'g = (%.3f +- %.3f) m/s^2\n' "$g" "$sigma"

#!/bin/sh
# g from a pendulum, g = 4 pi^2 L / T^2: how much do the errors of L and T matter?
#   L = (0.994 +- 0.002) m     T = (2.003 +- 0.005) s
formula="4*pi**2*L/T**2"
gradcli grad "$formula" --L 0.994±0.002 --T "2.003(5)" --budget --precision 5

echo "if whoever reads the ruler is also slow with the watch:"
gradcli grad "$formula" --L 0.994+-0.002 --T 2.003+-0.005 --covariance L,T=4e-6 --no-grad all

echo "in a script:"
gradcli grad "$formula" --L 0.994±0.002 --T 2.003±0.005 --json | jq -r '"\(.value) \(.uncertainty)"'

#!/bin/sh
# What comes out goes back in; JSON goes through jq.
gradcli eval "linspace(0, 1, 5)" --plain |
    gradcli eval "x**2" --x - --plain |
    gradcli grad "sum(sqrt(y + 1))" --y - --precision 4

echo "the nodes that save something:"
gradcli graph "y = a*x; sum(exp(y) + b)" --x 1,2 --a 3 --b 4 --json |
    jq -r '.nodes[] | select(.saved | length > 0) | "\(.name)\t\(.source)\t\(.saved | keys | join(","))"'

echo "steepest at:"
for angle in 0 30 60 90; do
    gradcli grad "sin(t*pi/180)" --t $angle --json | jq -c "{angle: $angle, slope: .grads.t.grad}"
done | jq -sc 'max_by(.slope)'

gradcli eval "1/x" --x 0 --json | jq -r '"infinity is \(.value | type) \(.value)"'
gradcli grad "x + y" --x 1,2 --y 1,2,3 --json 2>&1 | jq -r '.error.message'

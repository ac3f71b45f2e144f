#!/bin/sh
# Which of a loan's numbers matters most? Elasticity: percent of payment per percent of input.
payment="q = 1 + rate/12; p = loan*(q - 1)/(1 - q**(-months))"
gradcli grad "$payment; p" --loan 250000 --rate 0.04 --months 300 --value --precision 6
echo "percent of payment per percent:"
gradcli grad "scale = ones(3, requires_grad=True); loan = 250000*scale[0]; rate = 0.04*scale[1]; months = 300*scale[2]; $payment; log(p)" --precision 3

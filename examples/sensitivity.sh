#!/bin/sh
# Which of a loan's numbers matters most? Elasticities: percent of payment per percent of input.
payment="q = 1 + rate/12; loan*(q - 1)/(1 - q**(-months))"
gradcli grad "$payment" --loan 250000 --rate 0.04 --months 300 --value --precision 6
value=$(gradcli eval "$payment" --loan 250000 --rate 0.04 --months 300 --plain)
for input in loan=250000 rate=0.04 months=300; do
    name=${input%=*}
    slope=$(gradcli grad "$payment" --loan 250000 --rate 0.04 --months 300 --wrt "$name" --plain | cut -f2)
    echo "$name: $(gradcli eval "slope*at/value" --slope="$slope" --at "${input#*=}" --value-of 0 --let value="$value" --precision 3 2>/dev/null ||
        gradcli eval "s*a/v" --s="$slope" --a "${input#*=}" --v "$value" --precision 3)"
done

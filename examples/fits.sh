#!/bin/sh
# g from seven pendulums, whose lengths and periods both have uncertainties; what each of them shares.
gradcli fit "T == 2*pi*sqrt(L/g)" data/pendulum.csv --g 10 --budget

echo "two isotopes of silver that decay beside a constant background:"
gradcli fit "n == a1 + a2*exp(-t/a4) + a3*exp(-t/a5)" data/silver.csv --sigma dn --a1 10 --a2 900 --a3 80 --a4 27 --a5 225

echo "what the first fit found goes on, with its uncertainty:"
gradcli fit "T == 2*pi*sqrt(L/g)" data/pendulum.csv --g 10 --json 2>/dev/null > fit.json
gradcli eval "2*pi*sqrt(L/g)" --L 1.5±0.002 --params fit.json --budget
rm fit.json

echo "the smile of implied volatility in the prices of calls:"
gradcli fit -f programs/smile.txt data/options.csv --a 0.2 --b 0 --c 0

#!/bin/sh
# A table of pendulums, one answer a row: g = 4 pi^2 L / T^2 with its uncertainty, and each input's share.
table=$(mktemp)
printf 'who,L,T,sT\nAda,0.994,2.003,0.005\nBen,1.210,2.211,0.004\nCleo,,1.4,0.004\nDora,0.49,1.404,0.02\n' > "$table"
formula="4*pi**2*L/T**2"
gradcli map "$formula" - --uncertainty L=0.002 --uncertainty T=sT --budget --no-grad all \
    --keep-columns who --missing skip --precision 4 < "$table"

echo "and the mean of all, by columns:"
gradcli eval "mean($formula)" --L "@$table:L" --T "@$table:T" --missing skip --precision 4

echo "a file that somebody else's tool reads:"
gradcli map "$formula" - --missing skip --format jsonl --keep-columns who --no-grad all --precision 4 < "$table"
rm "$table"

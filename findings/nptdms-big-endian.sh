#!/usr/bin/env bash
# npTDMS: an array from a netCDF file is written with its bytes reversed; no error, and the file reads well.
#
# Guess: a NumPy array holds numbers, whatever the order of their bytes in memory. Written to a TDMS file and read
# back, the numbers are the same; or else the writer refuses the array.
# Seen with nptdms 1.13.0: scipy.io.netcdf_file gives an array of dtype >f8 (netCDF 3 stores big-endian numbers, and so do
# FITS files). `ChannelObject` takes it, and 20.5 comes back as 4.15e-317. The writer knows the types by
# their kind, says "little-endian" in the file, and copies the memory as it lies. Integers too: 1 is read as 16777216.
# `data.astype("f8")` before writing helps.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet nptdms==1.13.0 scipy==1.17.1 numpy==2.4.6
cat > "$work/ask.py" <<'PY'
import sys

import numpy as np
from nptdms import ChannelObject, TdmsFile, TdmsWriter
from scipy.io import netcdf_file

folder = sys.argv[1]
measured = [20.5, 21.0, 21.5, 22.0]
with netcdf_file(f"{folder}/logger.nc", "w") as file:
    file.createDimension("time", len(measured))
    file.createVariable("temperature", "f8", ("time",))[:] = measured
with netcdf_file(f"{folder}/logger.nc", "r", mmap=False) as file:
    temperature = file.variables["temperature"][:]


def there_and_back(array):
    with TdmsWriter(f"{folder}/logger.tdms") as writer:
        writer.write_segment([ChannelObject("room", "temperature", array)])
    return TdmsFile.read(f"{folder}/logger.tdms")["room"]["temperature"][:]


def shown(array):
    return f"{array.dtype.str} " + " ".join(f"{one:.6g}" for one in array.tolist())


print("netCDF:", shown(temperature))
print("TDMS:", shown(there_and_back(temperature)))
print("TDMS of integers 1, 2:", shown(there_and_back(np.array([1, 2], ">i4"))))
print("TDMS after astype:", shown(there_and_back(temperature.astype("f8"))))
PY
"$work/venv/bin/python" "$work/ask.py" "$work" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
netCDF: >f8 20.5 21 21.5 22
TDMS: <f8 4.15113e-317 6.7351e-320 4.15126e-317 6.86158e-320
TDMS of integers 1, 2: <i4 1.67772e+07 3.35544e+07
TDMS after astype: <f8 20.5 21 21.5 22
SEEN
echo "as it was seen"

#!/bin/sh
# Builds the comparison with AFF3CT from the folder of its checkout, submodules included.
# Only what its layered LDPC decoders need is compiled, one minute instead of most of an hour.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
mkdir -p build-peer
flags="-std=c++17 -O3 -march=native -DAFF3CT_MULTI_PREC -Iinclude -Isrc -Ilib/MIPP/src"
flags="$flags -Ilib/rang/include -Ilib/cli/src -Ilib/date/include/date -ffunction-sections -w"
flags="$flags -Iinclude/Module/Decoder/LDPC/BP/Horizontal_layered"
decoder=src/Module/Decoder
layered=$decoder/LDPC/BP/Horizontal_layered/ONMS
for file in src/Module/Module.cpp src/Module/Task.cpp $decoder/Decoder.cpp \
    $decoder/LDPC/BP/Decoder_LDPC_BP.cpp \
    $layered/Decoder_LDPC_BP_horizontal_layered_ONMS_inter.cpp \
    src/Tools/Algo/Matrix/Matrix.cpp src/Tools/Algo/Matrix/Sparse_matrix/Sparse_matrix.cpp \
    src/Tools/Code/LDPC/AList/AList.cpp src/Tools/Display/rang_format/rang_format.cpp \
    $(find src/Tools/Exception -name '*.cpp') src/Tools/general_utils.cpp \
    src/Tools/system_functions.cpp "$here/aff3ct.cpp"; do
    g++ $flags -c "$file" -o "build-peer/$(basename "$file" .cpp).o"
done
g++ -Wl,--gc-sections build-peer/*.o -o build-peer/peer -lpthread

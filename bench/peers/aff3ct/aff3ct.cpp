/* Speed of AFF3CT's layered min-sum decoders: one line a call. "build.sh DIR" builds it.
 *
 * Reads the matrix (NAME.alist), soft bits of some words (NAME.soft, one int8 each) and the bits
 * that they decode to (NAME.bits, packed), as "ldpc_export" writes them. Time is that of the thread
 * on its processor, as in the program it is compared with. One vector holds the same place of as
 * many words as it has lanes, so that a call decodes 32 words (16 bits) or 64 (8 bits). */
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "Decoder_LDPC_BP_horizontal_layered_inter.hpp"
#include "ONMS/Decoder_LDPC_BP_horizontal_layered_ONMS_inter.hpp"
#include "Tools/Code/LDPC/AList/AList.hpp"
#include "Tools/Code/LDPC/Update_rule/OMS/Update_rule_OMS_simd.hpp"

using namespace aff3ct;

static double now()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

template <typename T> static std::vector<T> read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) { std::cerr << "no " << path << "\n"; exit(2); }
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    return std::vector<T>(bytes.begin(), bytes.end());
}

template <typename T>
static void measure(module::Decoder_SIHO<T, T> &decoder, const char *name, const std::string &code,
                    int K, int N, int seconds)
{
    const auto soft = read<signed char>(code + ".soft");
    const auto bits = read<unsigned char>(code + ".bits");
    const int words = (int)(soft.size() / N), lanes = mipp::N<T>();
    decoder.set_n_frames(lanes);
    std::vector<T> from((size_t)lanes * N), to((size_t)lanes * K);
    for (int f = 0; f < lanes; f++)
        for (int i = 0; i < N; i++) from[(size_t)f * N + i] = soft[(size_t)(f % words) * N + i];
    decoder.decode_siho(from.data(), to.data());
    size_t wrong = 0;
    for (int f = 0; f < lanes; f++)
        for (int i = 0; i < K; i++) {
            const bool bit = bits[(size_t)(f % words) * (N / 8) + i / 8] >> (i % 8) & 1;
            wrong += bit != (to[(size_t)f * K + i] != 0);
        }
    int calls = 0;
    const double begin = now();
    while (now() - begin < seconds * 0.5) {
        decoder.decode_siho(from.data(), to.data());
        calls++;
    }
    const double rate = (double)calls * lanes * K / (now() - begin) / 1e6;
    std::cout << name << " " << rate << " Mbit/s, " << wrong << " wrong bits of " << lanes * K
              << "\n";
}

/* Arguments: NAME K int8|int16|onms16 ITERATIONS stop|fixed HALF_SECONDS */
int main(int count, char **arguments)
{
    if (count != 7) return 2;
    const std::string code = arguments[1], kind = arguments[3];
    const int K = atoi(arguments[2]), iterations = atoi(arguments[4]), half = atoi(arguments[6]);
    const bool stop = std::string(arguments[5]) == "stop";
    std::ifstream alist(code + ".alist");
    auto H = tools::AList::read(alist);
    if (H.get_n_rows() < H.get_n_cols()) H.self_transpose();
    const int N = (int)H.get_n_rows();
    std::vector<unsigned> places(K);
    for (int i = 0; i < K; i++) places[i] = i;
    if (kind == "int8") {
        using Rule = tools::Update_rule_OMS_simd<signed char>;
        module::Decoder_LDPC_BP_horizontal_layered_inter<signed char, signed char, Rule>
            decoder(K, N, iterations, H, places, Rule(1), stop);
        measure(decoder, "inter int8", code, K, N, half);
    } else if (kind == "int16") {
        using Rule = tools::Update_rule_OMS_simd<short>;
        module::Decoder_LDPC_BP_horizontal_layered_inter<short, short, Rule>
            decoder(K, N, iterations, H, places, Rule(1), stop);
        measure(decoder, "inter int16", code, K, N, half);
    } else {
        module::Decoder_LDPC_BP_horizontal_layered_ONMS_inter<short, short>
            decoder(K, N, iterations, H, places, 1.f, 1, stop);
        measure(decoder, "onms_inter int16", code, K, N, half);
    }
    return 0;
}

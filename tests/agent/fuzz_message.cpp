/* SPDX-License-Identifier: BSD-3-Clause */

/* Whatever arrives, decode() neither crashes nor accepts what encode() would not make. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "admission.h"
#include "samples.h"

using namespace zc::agent;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    static admission door(1);
    std::string_view bytes(reinterpret_cast<const char *>(data), size);
    message m;
    if (door.admit(bytes, 0, m) == flaw::none || decode(bytes, m) == flaw::none) {
        if (encode(m) != bytes)
            std::abort(); /* two spellings of one message */
    }
    return 0;
}

#ifdef ZC_FUZZ_STANDALONE
int main(int argc, char **argv)
{
    long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
    std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    random_source r(seed);
    for (long i = 0; i < rounds; i++) {
        std::string bytes = encode(test::random_message(r));
        for (std::uint64_t k = r.below(6); k > 0; k--) {
            std::size_t at = r.below(bytes.size() + 1);
            switch (r.below(4)) {
            case 0:
                bytes.insert(at, 1, static_cast<char>(r.next()));
                break;
            case 1:
                bytes.erase(at, r.below(9));
                break;
            case 2:
                if (at < bytes.size())
                    bytes[at] = static_cast<char>(r.next());
                break;
            default:
                if (at < bytes.size())
                    bytes[at] ^= static_cast<char>(1u << r.below(8));
                break;
            }
        }
        if (bytes.size() >= kHeaderBytes && r.chance(0.7)) { /* past the first check */
            auto body = static_cast<std::uint32_t>(bytes.size() - kHeaderBytes);
            std::memcpy(bytes.data() + kHeaderBytes - 4, &body, 4);
        }
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size());
    }
    std::printf("%ld inputs from seed %llu\n", rounds, static_cast<unsigned long long>(seed));
    return 0;
}
#endif

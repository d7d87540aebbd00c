/* SPDX-License-Identifier: BSD-3-Clause */
#include "preflight.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "error.h"
#include "memory_room.h"
#include "object_identity.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr std::string_view kMark = "zcm-preflight ";
/* What a successor takes beside its state: program, MPI, buffers. */
constexpr std::uint64_t kBeside = 64u << 20;

std::string contents(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string mebibytes(std::uint64_t bytes)
{
    return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB";
}

} // namespace

const std::vector<std::string_view> &feature_names()
{
    static const std::vector<std::string_view> names = {"sse3",
                                                        "ssse3",
                                                        "sse4_1",
                                                        "sse4_2",
                                                        "popcnt",
                                                        "aes",
                                                        "pclmulqdq",
                                                        "movbe",
                                                        "avx",
                                                        "f16c",
                                                        "fma",
                                                        "bmi1",
                                                        "bmi2",
                                                        "avx2",
                                                        "lzcnt",
                                                        "adx",
                                                        "sha_ni",
                                                        "gfni",
                                                        "vaes",
                                                        "vpclmulqdq",
                                                        "avx512f",
                                                        "avx512dq",
                                                        "avx512cd",
                                                        "avx512bw",
                                                        "avx512vl",
                                                        "avx512ifma",
                                                        "avx512vbmi",
                                                        "avx512_vbmi2",
                                                        "avx512_vnni",
                                                        "avx512_bitalg",
                                                        "avx512_vpopcntdq",
                                                        "avx512_bf16",
                                                        "avx512_fp16",
                                                        "avx_vnni",
                                                        "amx_tile",
                                                        "amx_int8",
                                                        "amx_bf16",
                                                        "fma4",
                                                        "xop",
                                                        "rdseed"};
    return names;
}

std::uint64_t features_in(std::string_view cpuinfo)
{
    const std::size_t at = cpuinfo.find("\nflags");
    if (at == std::string_view::npos)
        return 0;
    const std::string_view rest = cpuinfo.substr(at + 1);
    const std::size_t colon = rest.find(':');
    const std::string line =
        colon == std::string_view::npos
            ? ""
            : " " + std::string(rest.substr(colon + 1, rest.find('\n') - colon - 1)) + " ";
    /* Two have other names there. */
    const auto there = [&](std::string_view name) {
        const std::string_view shown = name == "sse3" ? "pni" : name == "lzcnt" ? "abm" : name;
        return line.find(" " + std::string(shown) + " ") != std::string::npos;
    };
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < feature_names().size(); i++)
        found |= there(feature_names()[i]) ? std::uint64_t{1} << i : 0;
    return found;
}

preflight preflight::of_this_process()
{
    preflight found;
    found.program = identity_of_program();
    found.library = identity_of_library(reinterpret_cast<const void *>(&why_no_room));
    found.features = features_in("\n" + contents("/proc/cpuinfo"));
    found.memory = memory_room();
    return found;
}

std::string preflight::to_line() const
{
    return std::string(kMark) + json{{"program", program},   {"library", library},
                                     {"features", features}, {"memory", memory},
                                     {"mpi", mpi},           {"libraries", libraries.to_text()}}
                                    .dump();
}

preflight preflight::find_in(std::string_view output)
{
    const std::size_t at = output.find(kMark);
    if (at == std::string_view::npos)
        throw error(EBADMSG, "no line that begins with '" + std::string(kMark) + "'");
    const std::string_view rest = output.substr(at + kMark.size());
    return understood("what the preflight says", std::string(rest.substr(0, rest.find('\n'))),
                      [](const json &object) {
                          preflight found;
                          found.program = object.at("program");
                          found.library = object.at("library");
                          found.features = object.at("features");
                          found.memory = object.at("memory");
                          found.mpi = object.at("mpi");
                          found.libraries =
                              loaded_libraries::from_text(object.value("libraries", ""));
                          return found;
                      });
}

preflight_checks preflight_checks::from(const std::string &text)
{
    if (text.empty() || text == "all")
        return {};
    preflight_checks none{false, false, false, false, false};
    if (text == "none")
        return none;
    none.run = true;
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');) {
        if (name == "build")
            none.build = true;
        else if (name == "features")
            none.features = true;
        else if (name == "memory")
            none.memory = true;
        else if (name == "network")
            none.network = true;
        else
            throw error(EINVAL, "bad value of ZC_MIGRATE_PREFLIGHT: " + text +
                                    " (all, none, or of build, features, memory, network)");
    }
    return none;
}

std::string why_not(const preflight &needed, const preflight &found, const std::string &host,
                    const preflight_checks &checks)
{
    const auto differs = [&](const std::string &what, const std::string &ours,
                             const std::string &theirs) {
        return "host " + host + " has another build of " + what + ": found " + theirs +
               ", needed " + ours;
    };
    if (checks.build && !is_same_build(found.program, needed.program))
        return differs("the program", needed.program, found.program);
    if (checks.build && !is_same_build(found.library, needed.library))
        return differs("libzcm", needed.library, found.library);
    if (checks.features) {
        std::string lacks;
        for (std::size_t i = 0; i < feature_names().size(); i++)
            if ((needed.features & ~found.features) >> i & 1)
                lacks.append(lacks.empty() ? "" : ", ").append(feature_names()[i]);
        if (!lacks.empty())
            return "the processor of host " + host + " lacks " + lacks +
                   ", which those of all ranks so far have (ZC_MIGRATE_PREFLIGHT)";
    }
    if (checks.network && !found.mpi.empty())
        return "MPI cannot be initialised on host " + host + ": " + found.mpi;
    return "";
}

std::string why_no_room(std::uint64_t bytes, std::uint64_t found, const std::string &host)
{
    if (found >= bytes + kBeside)
        return "";
    return "host " + host + " has too little memory: found " + mebibytes(found) +
           " that could be had, needed " + mebibytes(bytes + kBeside);
}

} // namespace zc::migrate

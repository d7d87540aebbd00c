/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace zc {

namespace {

struct field {
    const char *name;
    double zc_costs_t::*value;
};

constexpr std::array<field, 9> kFields = {{
    {"copy_ns_fixed", &zc_costs_t::copy_ns_fixed},
    {"copy_ns_per_byte", &zc_costs_t::copy_ns_per_byte},
    {"copy_ns_per_byte_long", &zc_costs_t::copy_ns_per_byte_long},
    {"mremap_ns_fixed", &zc_costs_t::mremap_ns_fixed},
    {"mremap_ns_per_page", &zc_costs_t::mremap_ns_per_page},
    {"mremap_ns_per_2m", &zc_costs_t::mremap_ns_per_2m},
    {"kmod_ns_fixed", &zc_costs_t::kmod_ns_fixed},
    {"kmod_ns_per_page", &zc_costs_t::kmod_ns_per_page},
    {"kmod_ns_per_2m", &zc_costs_t::kmod_ns_per_2m},
}};

struct closer {
    void operator()(std::FILE *f) const { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, closer>;

int read_all(const char *path, std::string &out)
{
    constexpr std::size_t kMost = 65536; /* nine numbers fit in a page */
    file f(std::fopen(path, "re"));
    if (!f)
        return -errno;
    std::array<char, 4096> chunk;
    while (std::size_t n = std::fread(chunk.data(), 1, chunk.size(), f.get())) {
        out.append(chunk.data(), n);
        if (out.size() > kMost)
            return -EBADMSG;
    }
    return std::ferror(f.get()) ? -EIO : 0;
}

} // namespace

int load_costs(const char *path, zc_costs_t &out)
{
    std::string text;
    if (int err = read_all(path, text))
        return err;
    nlohmann::json doc = nlohmann::json::parse(text, nullptr, false);
    if (!doc.is_object())
        return -EBADMSG;
    zc_costs_t costs{};
    costs.size = sizeof(costs);
    for (const field &f : kFields) {
        auto found = doc.find(f.name);
        if (found == doc.end() || !found->is_number())
            return -EBADMSG;
        costs.*f.value = found->get<double>();
    }
    if (!costs_plausible(costs))
        return -EBADMSG;
    out = costs;
    return 0;
}

int save_costs(const char *path, const zc_costs_t &costs)
{
    nlohmann::ordered_json doc;
    for (const field &f : kFields)
        doc[f.name] = costs.*f.value;
    std::string text = doc.dump(2) + "\n";

    /* Written aside and renamed: many ranks may start at once, and none may
     * read half a file. */
    std::string aside = std::string(path) + "." + std::to_string(getpid()) + ".tmp";
    file f(std::fopen(aside.c_str(), "we"));
    if (!f)
        return -errno;
    bool written = std::fwrite(text.data(), 1, text.size(), f.get()) == text.size();
    written = std::fclose(f.release()) == 0 && written;
    if (written && std::rename(aside.c_str(), path) == 0)
        return 0;
    int err = errno ? -errno : -EIO;
    (void)std::remove(aside.c_str());
    return err;
}

} // namespace zc

/* SPDX-License-Identifier: BSD-3-Clause */
/* zc-info: what this machine offers libzc, what each means of delivery costs
 * on it, and which one a delivery of a given size would take. */

#include "cost.h"
#include "exchanger.h"
#include "kernel.h"
#include "vma.h"
#include "zc/zc.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace {

/* Exit codes, also in zc-info.1. */
enum exit_code { kOk = 0, kFailed = 1, kUsage = 2, kBadCosts = 3, kCannotWrite = 4 };

struct options {
    bool json = false;
    std::string costs;
    std::string calibrate_to;
};

struct machine {
    std::string kernel;
    std::string thp;
    long page_bytes = sysconf(_SC_PAGESIZE);
    std::size_t max_map_count = zc::kernel_max_map_count();
    std::size_t mappings = zc::mapping_starts().size();
    zc::address_space::features features;
    std::string device;                       /* state of /dev/zc */
    std::vector<std::string> device_features; /* none unless it is ready */
    bool device_ready = false;
    std::size_t nodes = zc::kernel.memory_nodes();
    bool uncounted_pins; /* a driver that holds pages of its clients uncounted */
};

struct choice {
    std::size_t bytes;
    zc::way taken;
    double copy_us;
    double mremap_us;
    double kmod_us;
};

std::vector<std::string> names_of(std::uint64_t features)
{
    constexpr std::pair<std::uint64_t, const char *> kNames[] = {
        {ZC_FEATURE_EXCHANGE, "exchange"},
        {ZC_FEATURE_HUGE, "huge"},
        {ZC_FEATURE_URING, "uring"},
    };
    std::vector<std::string> names;
    for (const auto &[bit, name] : kNames)
        if (features & bit)
            names.push_back(name);
    return names;
}

machine look_around()
{
    machine m;
    utsname name{};
    uname(&name);
    m.kernel = name.release;
    constexpr const char *kModes[] = {"never", "madvise", "always"};
    m.thp = kModes[static_cast<int>(zc::kernel_thp_mode())];
    zc::address_space space;
    m.features = space.available();
    m.uncounted_pins = space.drivers().present();
    zc::exchanger device(true);
    m.device = device.status();
    m.device_ready = device.ready();
    m.device_features = names_of(device.features());
    return m;
}

/** A message of @bytes 16 bytes into a page, as malloc() places it. */
choice choose(const zc_costs_t &costs, std::size_t bytes)
{
    zc::range body = zc::whole_units(zc::range_at(16, bytes), zc::kPage);
    zc::extent e{bytes, body.size()};
    e.in_units = bytes >= 4u << 20 ? zc::whole_units(body, zc::kHuge).size() : 0;
    auto us = [&](zc_means_t means) { return zc::way_ns(costs, e, {means, means}) / 1e3; };
    return {bytes, zc::cheapest_way(costs, e, zc::kAllMeans), us(ZC_MEANS_COPY),
            us(ZC_MEANS_MREMAP), us(ZC_MEANS_KMOD)};
}

std::string name_of(zc::way w)
{
    std::string units = zc_means_name(w.units), pages = zc_means_name(w.pages);
    return units == pages ? pages : units + "+" + pages;
}

std::vector<choice> choose_all(const zc_costs_t &costs)
{
    std::vector<choice> all;
    for (std::size_t bytes = 4096; bytes <= std::size_t{64} << 20; bytes *= 2)
        all.push_back(choose(costs, bytes));
    return all;
}

/** Smallest size, to a page, that is not copied; 0 if all are. */
std::size_t break_even(const zc_costs_t &costs)
{
    constexpr std::size_t kMost = std::size_t{64} << 20;
    for (std::size_t bytes = zc::kPage; bytes <= kMost; bytes += zc::kPage)
        if (choose(costs, bytes).taken.exchanges())
            return bytes;
    return 0;
}

std::string size_text(std::size_t bytes)
{
    return bytes >= 1u << 20 && bytes % (1u << 20) == 0 ? fmt::format("{} MiB", bytes >> 20)
                                                        : fmt::format("{} KiB", bytes >> 10);
}

const char *yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

std::string us_text(double us)
{
    return std::isfinite(us) ? fmt::format("{:.1f}", us) : "-";
}

void print_text(const machine &m, const zc_costs_t &costs)
{
    fmt::print("kernel                {}\n", m.kernel);
    fmt::print("page size             {} bytes{}\n", m.page_bytes,
               m.page_bytes == 4096 ? "" : " (only 4096 is supported: everything is copied)");
    fmt::print("huge pages            {} KiB, mode {}\n", zc::kHuge / 1024, m.thp);
    fmt::print("NUMA nodes            {}\n", m.nodes);
    fmt::print("mappings              {} of {}\n", m.mappings, m.max_map_count);
    fmt::print("PROCMAP_QUERY         {}\n", yes_no(m.features.procmap_query));
    fmt::print("PAGEMAP_SCAN          {}\n", yes_no(m.features.pagemap_scan));
    fmt::print("/dev/zc               {}{}\n", m.device,
               m.device_ready ? fmt::format(" ({})", fmt::join(m.device_features, ", ")) : "");
    fmt::print("NVIDIA, VFIO, KNEM    {}\n\n",
               m.uncounted_pins ? "present: a process that uses them is not rebound by mremap"
                                : "none");

    fmt::print("copy                  {:.0f} ns + {:.4f} ns/byte ({:.4f} beyond 4 MiB)\n",
               costs.copy_ns_fixed, costs.copy_ns_per_byte, costs.copy_ns_per_byte_long);
    if (costs.mremap_ns_fixed > 0)
        fmt::print("mremap                {:.0f} ns + {:.1f} ns/page, {:.0f} ns/2 MiB\n",
                   costs.mremap_ns_fixed, costs.mremap_ns_per_page, costs.mremap_ns_per_2m);
    else
        fmt::print("mremap                not available\n");
    if (costs.kmod_ns_fixed > 0)
        fmt::print("kmod                  {:.0f} ns + {:.1f} ns/page, {:.0f} ns/2 MiB\n",
                   costs.kmod_ns_fixed, costs.kmod_ns_per_page, costs.kmod_ns_per_2m);
    else
        fmt::print("kmod                  not available\n");
    std::size_t even = break_even(costs);
    fmt::print("rebinding pays from   {}\n\n", even ? size_text(even) : "never, up to 64 MiB");

    fmt::print("{:>9}  {:<11} {:>10} {:>10} {:>10}\n", "bytes", "means", "copy us", "mremap us",
               "kmod us");
    for (const choice &c : choose_all(costs))
        fmt::print("{:>9}  {:<11} {:>10} {:>10} {:>10}\n", size_text(c.bytes), name_of(c.taken),
                   us_text(c.copy_us), us_text(c.mremap_us), us_text(c.kmod_us));
}

void print_json(const machine &m, const zc_costs_t &costs)
{
    nlohmann::ordered_json doc;
    doc["version"] = zc_version();
    doc["kernel"] = m.kernel;
    doc["page_bytes"] = m.page_bytes;
    doc["huge_page_bytes"] = zc::kHuge;
    doc["thp"] = m.thp;
    doc["numa_nodes"] = m.nodes;
    doc["mappings"] = m.mappings;
    doc["max_map_count"] = m.max_map_count;
    doc["procmap_query"] = m.features.procmap_query;
    doc["pagemap_scan"] = m.features.pagemap_scan;
    doc["dev_zc"] = m.device_ready;
    doc["dev_zc_status"] = m.device;
    doc["dev_zc_features"] = m.device_features;
    doc["uncounted_pins"] = m.uncounted_pins;
    doc["costs"] = {{"copy_ns_fixed", costs.copy_ns_fixed},
                    {"copy_ns_per_byte", costs.copy_ns_per_byte},
                    {"copy_ns_per_byte_long", costs.copy_ns_per_byte_long},
                    {"mremap_ns_fixed", costs.mremap_ns_fixed},
                    {"mremap_ns_per_page", costs.mremap_ns_per_page},
                    {"mremap_ns_per_2m", costs.mremap_ns_per_2m},
                    {"kmod_ns_fixed", costs.kmod_ns_fixed},
                    {"kmod_ns_per_page", costs.kmod_ns_per_page},
                    {"kmod_ns_per_2m", costs.kmod_ns_per_2m}};
    doc["break_even_bytes"] = break_even(costs);
    for (const choice &c : choose_all(costs))
        doc["means"].push_back({{"bytes", c.bytes}, {"means", name_of(c.taken)}});
    fmt::print("{}\n", doc.dump(2));
}

/** The costs from the file the user named, or measured now. */
int get_costs(const options &opt, zc_costs_t &costs)
{
    if (!opt.costs.empty()) {
        int err = zc::load_costs(opt.costs.c_str(), costs);
        if (err)
            fmt::print(stderr, "zc-info: {}: {}\n", opt.costs,
                       err == -EBADMSG ? "not a cost file" : strerror(-err));
        return err ? kBadCosts : kOk;
    }
    auto zc = zc::context::create();
    costs.size = sizeof(costs);
    int err = zc ? zc_calibrate(zc->get(), &costs) : zc.error();
    if (err)
        fmt::print(stderr, "zc-info: cannot measure: {}\n", strerror(-err));
    return err ? kFailed : kOk;
}

int run(const options &opt)
{
    zc_costs_t costs{};
    if (int code = get_costs(opt, costs))
        return code;
    if (!opt.calibrate_to.empty()) {
        if (int err = zc::save_costs(opt.calibrate_to.c_str(), costs)) {
            fmt::print(stderr, "zc-info: {}: {}\n", opt.calibrate_to, strerror(-err));
            return kCannotWrite;
        }
    }
    opt.json ? print_json(look_around(), costs) : print_text(look_around(), costs);
    return std::fflush(stdout) == 0 ? kOk : kFailed;
}

} // namespace

int main(int argc, char **argv)
{
    options opt;
    CLI::App app{"Shows what this machine offers libzc and what deliveries cost on it."};
    app.set_version_flag("--version", std::string("zc-info ") + zc_version());
    app.add_flag("--json", opt.json, "print one JSON object");
    app.add_option("--costs", opt.costs, "take the costs from FILE instead of measuring")
        ->type_name("FILE");
    app.add_option("--calibrate-to", opt.calibrate_to, "write the measured costs to FILE")
        ->type_name("FILE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kOk : kUsage;
    }
    try {
        return run(opt);
    } catch (const std::exception &e) {
        fmt::print(stderr, "zc-info: {}\n", e.what());
        return kFailed;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/utsname.h>

double quantile(std::vector<double> samples, double part)
{
    if (samples.empty())
        return 0;
    std::sort(samples.begin(), samples.end());
    const double at = part * static_cast<double>(samples.size() - 1);
    const size_t below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

static std::string cpu_model()
{
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("model name", 0) == 0)
            return line.substr(line.find(':') + 2);
    }
    return "unknown";
}

static std::string thp_state()
{
    std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string line;
    std::getline(in, line);
    return line;
}

static nlohmann::json context()
{
    utsname system{};
    uname(&system);
    double load = 0;
    (void)!getloadavg(&load, 1);
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof(date), "%FT%TZ", std::gmtime(&now));
    return {{"kernel", system.release},
            {"cpu", cpu_model()},
            {"thp", thp_state()},
            {"load", load},
            {"date", date},
            {"versions", {{"zc", ZC_VERSION}}}};
}

report::report(const std::string &bench, const std::string &path, mode how)
    : bench_(bench), path_(path)
{
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty())
        std::filesystem::create_directories(folder);
    out_.open(path, how == mode::anew ? std::ios::trunc : std::ios::app);
    if (how == mode::anew)
        out_ << nlohmann::json{{"context", context()}}.dump() << std::endl;
    if (!out_)
        throw std::runtime_error(path + ": cannot be written");
}

void report::add(const result &r)
{
    nlohmann::ordered_json line;
    line["bench"] = bench_;
    line["case"] = r.name;
    line["impl"] = r.impl;
    line["bytes"] = 0;
    line["metric"] = r.metric;
    line["unit"] = r.unit;
    line["median"] = quantile(r.samples, 0.5);
    line["p10"] = quantile(r.samples, 0.1);
    line["p90"] = quantile(r.samples, 0.9);
    line["n"] = r.samples.size();
    out_ << line.dump() << std::endl;
    if (!out_)
        throw std::runtime_error(path_ + ": cannot be written");
}

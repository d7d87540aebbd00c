/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_processes.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "zch/rank_mark.h"
#include "zch/rank_traffic.h"

namespace zc::agent {
namespace {

constexpr std::uint32_t kOftenLooked =
    10;                         /* readings: a process may still become another program */
constexpr int kSeldom = 30;     /* readings between looks after that */
constexpr double kNewest = 0.3; /* weight of the newest reading */
constexpr double kHardly = 0.1; /* processors: a rank that uses less is idle */

std::string whole(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/** The value of @name in @environment, whose entries end with a zero. */
std::string value_of(const std::string &environment, const std::string &name)
{
    const std::string begin = name + "=";
    for (std::size_t at = 0; at < environment.size();) {
        const std::size_t end = std::min(environment.find('\0', at), environment.size());
        if (environment.compare(at, begin.size(), begin) == 0)
            return environment.substr(at + begin.size(), end - at - begin.size());
        at = end + 1;
    }
    return {};
}

std::string base_name(const std::string &path)
{
    return path.substr(path.rfind('/') + 1);
}

/** Seconds since a process began, which the kernel counts in ticks since the host did. */
double age(std::uint64_t start)
{
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const double began = static_cast<double>(start) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return std::max(0.0, static_cast<double>(now.tv_sec) - began);
}

} // namespace

held_processes::held_processes(std::string home, std::string proc)
    : home_(std::move(home)), proc_(std::move(proc))
{
    std::error_code none;
    network_ = std::filesystem::read_symlink(proc_ + "/self/ns/net", none);
}

std::string held_processes::text_of(const std::string &pid, const char *name) const
{
    return whole(proc_ + "/" + pid + "/" + name);
}

/** Of this user's; false: it is another's, or has ended. */
bool held_processes::read_process(const std::string &pid, process &out) const
{
    struct stat s;
    if (stat((proc_ + "/" + pid).c_str(), &s) != 0 || s.st_uid != geteuid())
        return false;
    const std::string text = text_of(pid, "stat");
    const std::size_t name_ends = text.rfind(')'); /* a name may have any character */
    if (name_ends == std::string::npos)
        return false;
    std::istringstream rest(text.substr(name_ends + 1));
    std::string state, skipped;
    rest >> state >> out.parent;
    for (int field = 5; field < 22; field++)
        rest >> skipped;
    return (rest >> out.start) && state != "Z";
}

bool held_processes::is_of_zc_hold(int parent) const
{
    const std::string words = text_of(std::to_string(parent), "cmdline");
    return base_name(words.c_str()) == "zc-hold";
}

/** Whether it is a rank, and which. */
void held_processes::look(const std::string &pid, const process &what, known &k)
{
    k.looks++;
    const bool often = k.looks <= kOftenLooked;
    if (!often && (std::stoi(pid) + reading_) % kSeldom != 0)
        return;
    const std::string environment = text_of(pid, "environ");
    const auto mark = holder::read_mark(value_of(environment, holder::kRankMark));
    if (!mark) {
        if (environment.empty() && is_of_zc_hold(what.parent))
            unread_++;
        return;
    }
    std::error_code none;
    const std::string net =
        std::filesystem::read_symlink(proc_ + "/" + pid + "/ns/net", none).string();
    if (net != network_ || !is_of_zc_hold(what.parent))
        return;
    k.is_rank = true;
    k.origin = {mark->home, mark->pid};
    k.job = mark->job;
    k.key = {holder::number_of_job(mark->job), static_cast<rank_id>(mark->rank)};
    k.world = static_cast<std::uint32_t>(std::max(mark->size, mark->rank + 1));
    if (mark->rank < mark->size)
        k.traffic = std::make_shared<holder::traffic_reader>(*mark);
    k.movable = value_of(environment, "MPIR_CVAR_CH4_ZC_DETACH") == "1";
}

/** The processors that all its threads used, or waited for. */
void held_processes::measure(const std::string &pid, std::uint64_t now_ns, known &k) const
{
    std::uint64_t used = 0;
    std::error_code over; /* with the process, at any time */
    for (std::filesystem::directory_iterator thread(proc_ + "/" + pid + "/task", over), end;
         !over && thread != end; thread.increment(over)) {
        std::ifstream text(thread->path() / "schedstat");
        std::uint64_t ran = 0, waited = 0;
        if (text >> ran >> waited)
            used += ran + waited;
    }
    if (k.at_ns != 0 && now_ns > k.at_ns) {
        /* A thread that has ended takes its time along. */
        const double now = static_cast<double>(used - std::min(used, k.used_ns)) /
                           static_cast<double>(now_ns - k.at_ns);
        k.processors = k.processors < 0 ? now : k.processors + kNewest * (now - k.processors);
    }
    k.used_ns = used;
    k.at_ns = now_ns;
}

void held_processes::take_messages(std::uint64_t now_ns, known &k, rank_reading &one)
{
    one.tells = false;
    if (!k.traffic)
        return;
    for (const holder::traffic_entry &each : k.traffic->read())
        one.events.push_back({one.profile.key.rank, each.receiver, std::uint64_t{each.kib} << 10,
                              std::min(each.time_ns, now_ns), 0, 0});
    one.events_missed = k.traffic->missed();
    one.tells = k.traffic->is_told();
    k.rates.add(now_ns, one.events, one.events_missed);
    one.profile.flows = k.rates.flows();
}

rank_reading held_processes::describe(const std::string &pid, const known &k) const
{
    rank_reading one;
    one.pid = static_cast<std::uint32_t>(std::stoul(pid));
    one.world = k.world;
    one.job_name = k.job;
    rank_profile &r = one.profile;
    r.key = k.key;
    /* One that has come from elsewhere has moved, whoever has told it to. */
    r.epoch = k.origin.home == home_ ? 1 : 2;
    r.transparent = true;
    r.movable = k.movable;
    r.idle = k.processors >= 0 && k.processors < kHardly;
    r.processors = std::max(0.0, k.processors);
    r.elapsed_s = age(k.start);
    std::istringstream memory(text_of(pid, "statm"));
    std::uint64_t pages = 0, resident = 0;
    if (memory >> pages >> resident)
        r.image_bytes = resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return one;
}

std::map<rank_key, rank_reading> held_processes::read(std::uint64_t now_ns)
{
    std::map<rank_key, rank_reading> found;
    std::map<std::string, known> still;
    origins_.clear();
    unread_ = 0;
    reading_ = (reading_ + 1) % kSeldom;
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(proc_.c_str()), closedir);
    while (const dirent *entry = dir ? readdir(dir.get()) : nullptr) {
        const std::string pid = entry->d_name;
        process what;
        if (!std::isdigit(static_cast<unsigned char>(pid[0])) || !read_process(pid, what))
            continue;
        known &k = still[pid];
        if (const auto at = known_.find(pid); at != known_.end() && at->second.start == what.start)
            k = std::move(at->second);
        k.start = what.start;
        if (!k.is_rank)
            look(pid, what, k);
        if (!k.is_rank)
            continue;
        measure(pid, now_ns, k);
        if (!origins_.try_emplace(k.key, k.origin).second)
            continue;
        rank_reading one = describe(pid, k);
        take_messages(now_ns, k, one);
        found.emplace(k.key, std::move(one));
    }
    known_ = std::move(still);
    return found;
}

const rank_origin *held_processes::origin_of(const rank_key &rank) const
{
    const auto at = origins_.find(rank);
    return at == origins_.end() ? nullptr : &at->second;
}

} // namespace zc::agent

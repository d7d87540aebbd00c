/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_files.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"

namespace zc::agent {
namespace {

constexpr std::size_t kMostFiles = 65536;
constexpr int kTries = 50;      /* a writer holds the sequence lock for nanoseconds */
constexpr double kWeight = 0.3; /* of the newest rate */

bool read_at(int fd, void *to, std::size_t size, std::uint64_t offset)
{
    return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

/** A number of a process may be another's by now, or of another namespace; the lock is its own. */
bool writer_is_gone(int fd)
{
    struct flock whole {};
    whole.l_type = F_RDLCK;
    whole.l_whence = SEEK_SET;
    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}

/** Where the parts of the file are that follow the structure. */
constexpr std::uint64_t kRingAt = sizeof(zcm_profile);
constexpr std::uint64_t kHostsAt = kRingAt + ZCM_PROFILE_RING * sizeof(zcm_profile_message);
std::uint64_t names_at(const zcm_profile &p)
{
    return kHostsAt + std::uint64_t{p.world} * sizeof(std::uint32_t);
}

/** What the sequence lock guards, all of the same moment. */
struct guarded {
    zcm_profile_counters counters{};
    std::vector<std::uint32_t> host_of;
    std::vector<char> names;
};

/** Is that a regular file of this user, and in it a whole profile of a rank that lives? */
bool validate(int fd, const std::string &path, zcm_profile &p)
{
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid())
        return false;
    if (!read_at(fd, &p, sizeof p, 0) || p.magic != ZCM_PROFILE_MAGIC ||
        p.version != ZCM_PROFILE_VERSION || p.job == 0 || p.world == 0 ||
        p.world > ZCM_PROFILE_MAX_WORLD || p.rank >= p.world || p.hosts_max == 0 ||
        p.hosts_max > p.world + 65536u || p.size != zcm_profile_size(p.world, p.hosts_max) ||
        s.st_size < static_cast<off_t>(p.size) ||
        std::memchr(p.job_name, 0, sizeof p.job_name) == nullptr)
        return false;
    if (writer_is_gone(fd) || (p.counters.flags & ZCM_PROFILE_ENDED)) {
        unlink(path.c_str());
        return false;
    }
    return true;
}

/** Reads under the sequence lock: again, until nothing has been written meanwhile. */
bool copy_guarded(int fd, const zcm_profile &p, guarded &g)
{
    g.host_of.resize(p.world);
    for (int i = 0; i < kTries; i++) {
        std::uint32_t before = 0;
        std::uint32_t after = 0;
        if (!read_at(fd, &before, sizeof before, offsetof(zcm_profile, sequence)) ||
            !read_at(fd, &g.counters, sizeof g.counters, offsetof(zcm_profile, counters)))
            return false;
        std::uint32_t hosts = std::min(g.counters.hosts, p.hosts_max);
        g.names.resize(std::size_t{hosts} * ZCM_PROFILE_NAME);
        if (hosts > 0 && (!read_at(fd, g.host_of.data(), g.host_of.size() * 4, kHostsAt) ||
                          !read_at(fd, g.names.data(), g.names.size(), names_at(p))))
            return false;
        if (!read_at(fd, &after, sizeof after, offsetof(zcm_profile, sequence)))
            return false;
        if (before == after && before % 2 == 0)
            return true;
        usleep(20);
    }
    return false; /* its writer died while writing, or is not one of ours */
}

void describe(const zcm_profile &p, const guarded &g, std::uint64_t now_ns, rank_reading &out)
{
    const zcm_profile_counters &c = g.counters;
    rank_profile &r = out.profile;
    r.key = {p.job, p.rank};
    r.epoch = c.epoch;
    r.image_bytes = c.image_bytes;
    r.iterations = c.iterations;
    r.total_iterations = c.total_iterations;
    r.movable = (c.flags & ZCM_PROFILE_MOVABLE) != 0;
    r.elapsed_s = now_ns > c.start_ns ? static_cast<double>(now_ns - c.start_ns) / 1e9 : 0;
    out.world = p.world;
    out.pid = p.pid;
    out.busy = (c.flags & ZCM_PROFILE_BUSY) != 0;
    out.observe = (c.flags & ZCM_PROFILE_OBSERVE) != 0;
    out.job_name = p.job_name;
    std::size_t hosts = g.names.size() / ZCM_PROFILE_NAME;
    if (hosts == 0)
        return;
    out.host_of.resize(p.world);
    for (std::uint32_t i = 0; i < p.world; i++) {
        if (g.host_of[i] < hosts) {
            const char *name = g.names.data() + std::size_t{g.host_of[i]} * ZCM_PROFILE_NAME;
            out.host_of[i].assign(name, strnlen(name, ZCM_PROFILE_NAME));
        }
    }
}

} // namespace

/** Rates, since the last reading. */
void rank_files::take_rates(const zcm_profile &p, const zcm_profile_counters &c,
                            std::uint64_t now_ns, known &k, rank_profile &r)
{
    double passed = k.first ? 0 : static_cast<double>(now_ns - k.at_ns) / 1e9;
    if (passed > 0) {
        double rate =
            static_cast<double>(c.iterations - std::min(c.iterations, k.iterations)) / passed;
        k.iterations_per_s =
            k.iterations_per_s == 0 ? rate : (1 - kWeight) * k.iterations_per_s + kWeight * rate;
        r.mpi_share = std::clamp(
            static_cast<double>(c.mpi_ns - std::min(c.mpi_ns, k.mpi_ns)) / 1e9 / passed, 0.0, 1.0);
    }
    r.iterations_per_s = k.iterations_per_s;
    for (const zcm_profile_peer &e : p.peers) {
        if (e.rank_plus_1 == 0 || e.rank_plus_1 > p.world)
            continue;
        std::uint32_t peer = e.rank_plus_1 - 1;
        auto &[bytes, messages] = k.sent[peer];
        flow &f = k.rates[peer];
        f.peer = peer;
        if (passed > 0) {
            auto blend = [&](double &mean, std::uint64_t now, std::uint64_t then) {
                mean += kWeight * (static_cast<double>(now - std::min(now, then)) / passed - mean);
            };
            blend(f.bytes_per_s, e.bytes, bytes);
            blend(f.messages_per_s, e.messages, messages);
        }
        bytes = e.bytes;
        messages = e.messages;
        r.flows.push_back(f);
    }
    k.iterations = c.iterations;
    k.mpi_ns = c.mpi_ns;
    k.at_ns = now_ns;
}

/** A reading in which the job was being reconfigured is none of the rank's work. */
void rank_files::take_work(int fd, const zcm_profile &p, const zcm_profile_counters &c,
                           std::uint64_t now_ns, known &k, rank_profile &r)
{
    if (auto time = time_of_writer(p, fd))
        k.work.read(now_ns, *time, c.mpi_ns, c.iterations,
                    (c.flags & ZCM_PROFILE_BUSY) == 0 && c.epoch == k.epoch);
    else
        untimed_++;
    k.epoch = c.epoch;
    r.work_s = k.work.seconds();
}

/** The ring: from where we were, or from the oldest that is still whole. */
bool rank_files::take_messages(int fd, const zcm_profile &p, std::uint64_t now_ns, known &k,
                               rank_reading &out)
{
    std::uint64_t head = p.ring_head;
    std::uint64_t from = k.first ? (head > ZCM_PROFILE_RING ? head - ZCM_PROFILE_RING : 0)
                                 : std::min(k.ring_head, head);
    if (head - from > ZCM_PROFILE_RING) {
        out.events_missed = head - from - ZCM_PROFILE_RING;
        from = head - ZCM_PROFILE_RING;
    }
    std::vector<zcm_profile_message> ring(ZCM_PROFILE_RING);
    if (head != from && read_at(fd, ring.data(), ring.size() * sizeof ring[0], kRingAt)) {
        std::uint64_t head_now = 0;
        if (!read_at(fd, &head_now, sizeof head_now, offsetof(zcm_profile, ring_head)))
            return false;
        /* What the writer has reached meanwhile is torn; leave one more entry to it. */
        std::uint64_t safe = head_now + 1 > ZCM_PROFILE_RING ? head_now + 1 - ZCM_PROFILE_RING : 0;
        if (safe > from) {
            out.events_missed += std::min(safe, head) - from;
            from = std::min(safe, head);
        }
        for (std::uint64_t i = from; i < head; i++) {
            const zcm_profile_message &m = ring[i % ZCM_PROFILE_RING];
            if (m.peer < p.world)
                out.events.push_back({p.rank, m.peer, std::uint64_t{m.kibibytes} << 10,
                                      std::min(m.time_ns, now_ns), 0, 0});
        }
    }
    k.ring_head = head;
    return true;
}

bool rank_files::read_one(const std::string &path, std::uint64_t now_ns, rank_reading &out,
                          known &k)
{
    descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    auto p = std::make_unique<zcm_profile>();
    guarded g;
    if (!validate(file.fd, path, *p) || !copy_guarded(file.fd, *p, g))
        return false;
    describe(*p, g, now_ns, out);
    take_work(file.fd, *p, g.counters, now_ns, k, out.profile);
    take_rates(*p, g.counters, now_ns, k, out.profile);
    if (!take_messages(file.fd, *p, now_ns, k, out))
        return false;
    k.first = false;
    return true;
}

std::map<rank_key, rank_reading> rank_files::read(std::uint64_t now_ns)
{
    std::map<rank_key, rank_reading> found;
    std::map<std::string, known> still;
    std::size_t count = 0;
    untimed_ = 0;
    for (const std::string &directory : directories_) {
        std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(directory.c_str()), closedir);
        while (dir) {
            dirent *entry = readdir(dir.get());
            if (entry == nullptr || ++count > kMostFiles)
                break;
            const std::string name = entry->d_name, path = directory + "/" + name;
            if (name[0] == '.' || name.ends_with(".new"))
                continue;
            known k = known_[path];
            rank_reading reading;
            if (!read_one(path, now_ns, reading, k)) {
                refused_++;
                continue;
            }
            if (reading.host_of.empty())
                continue; /* only now begun: where the others are, and the epoch, come next */
            still[path] = std::move(k);
            /* After a move to and fro the newer process counts: it has the higher epoch. */
            auto at = found.find(reading.profile.key);
            if (at == found.end() || at->second.profile.epoch < reading.profile.epoch)
                found[reading.profile.key] = std::move(reading);
        }
    }
    known_ = std::move(still);
    return found;
}

void add_held(std::map<rank_key, rank_reading> &found, std::map<rank_key, rank_reading> held,
              bool observe)
{
    std::set<std::uint32_t> by_safe_points;
    for (const auto &[key, reading] : found)
        by_safe_points.insert(reading.pid);
    for (auto &[key, reading] : held) {
        if (by_safe_points.contains(reading.pid))
            continue;
        reading.observe = observe;
        found.emplace(key, std::move(reading));
    }
}

} // namespace zc::agent

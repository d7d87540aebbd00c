/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <spdlog/spdlog.h>

#include "host_name.h"
#include "identity.h"

namespace zc::agent {
namespace {

constexpr nanos kLookAtQueue = 100 * kMillisecond;
constexpr nanos kSeedsAnswer = 10 * kSecond;
constexpr double kAnswersFirst = 10; /* seconds that the mover gives up before the decider does */
constexpr std::size_t kMostAtOnce = 256; /* messages before timers get their turn */

/** Everything below it is ours alone. */
void private_directory(const std::string &path)
{
    struct stat s;
    if (mkdir(path.c_str(), 0700) != 0 && errno == ENOENT) {
        std::error_code ignored;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
        mkdir(path.c_str(), 0700);
    }
    if (lstat(path.c_str(), &s) != 0)
        throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
        throw std::runtime_error(path + ": must be a directory that is ours alone (mode 0700)");
}

/** Never half a file: a new one is written, synced and renamed. */
bool replace_file(const std::string &path, const std::string &text)
{
    std::string fresh = path + ".new";
    int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool good =
        write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
    good = close(fd) == 0 && good && rename(fresh.c_str(), path.c_str()) == 0;
    if (!good)
        unlink(fresh.c_str());
    return good;
}

std::optional<saved_state> read_state(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    if (!in || !(text << in.rdbuf()))
        return {};
    auto state = from_text(text.str());
    if (!state)
        spdlog::warn("{}: not a state file of zcmd; starting without memory", path);
    return state;
}

std::vector<std::string> all(std::string first, const std::vector<std::string> &others)
{
    std::vector<std::string> found{std::move(first)};
    found.insert(found.end(), others.begin(), others.end());
    return found;
}

} // namespace

nanos node_daemon::now() const
{
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

double node_daemon::wall() const
{
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

node_daemon::node_daemon(const config &c, const key_pair &keys)
    : config_(c), transport_(config_.listen, keys), load_(config_.cgroup, config_.cpus),
      files_(all(config_.profile_directory, config_.other_profile_directories)), held_(host_name()),
      mover_(all(config_.socket_directory, config_.other_socket_directories),
             to_seconds(config_.logic.move_timeout) - kAnswersFirst),
      holders_(config_.key_file, to_seconds(config_.logic.move_timeout) - kAnswersFirst)
{
    namespace fs = std::filesystem;
    if (!config_.why_not_runtime.empty())
        spdlog::warn("{}", config_.why_not_runtime);
    private_directory(fs::path(config_.status_socket).parent_path());
    private_directory(config_.socket_directory);
    private_directory(config_.profile_directory);
    std::error_code ignored;
    fs::create_directories(fs::path(config_.state_file).parent_path(), ignored);

    /* The port, where the system chose it. */
    auto port_of = [](const std::string &e) { return e.substr(e.rfind(':') + 1); };
    if (config_.advertise.ends_with(":*"))
        config_.advertise = config_.advertise.substr(0, config_.advertise.size() - 1) +
                            port_of(transport_.endpoint());

    auto saved = read_state(config_.state_file);
    member self;
    self.id = saved ? saved->id : draw_identity();
    self.host = config_.host;
    self.address = config_.advertise;
    auto incarnation = static_cast<std::uint64_t>(wall() * 1e9);
    if (saved)
        incarnation = std::max(incarnation, saved->incarnation + 1);
    draining_ = saved && saved->draining;
    if (draining_)
        spdlog::info("being emptied, as before (zcctl resume ends that)");
    agent_ = std::make_unique<agent>(config_.logic, self, incarnation, draw_identity());
    agent_->decisions().on_record = [this](const record &r) { note(r); };
    door_ = std::make_unique<admission>(self.id);
    outward_.shape = read_shape();

    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, nullptr); /* before any thread of ours, so that all inherit it */
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!config_.record_file.empty()) {
        record_.reset(std::fopen(config_.record_file.c_str(), "ae"));
        if (!record_)
            throw std::runtime_error(
                fmt::format("{}: {}", config_.record_file, std::strerror(errno)));
    }
    web_ = std::make_unique<web>(config_.status_socket, config_.prometheus_port,
                                 [this](const std::string &command) {
                                     std::lock_guard lock(commands_mutex_);
                                     commands_.push_back(command);
                                     std::uint64_t one = 1;
                                     (void)!write(wake_, &one, sizeof one);
                                 });

    spdlog::info("agent {} of {} at {}, policy {}, grouping {}, {}", hex(self.id), self.host,
                 self.address, config_.logic.policy, config_.logic.grouping,
                 load_.cgroup().empty() ? "whole machine" : "cgroup " + load_.cgroup());
    apply(agent_->start(now(), saved));
}

node_daemon::~node_daemon()
{
    web_.reset();
    close(wake_);
    close(signals_);
}

void node_daemon::run()
{
    while (!leaving_) {
        nanos at = now();
        if (at >= next_look_) {
            load_.runnable(static_cast<std::uint64_t>(at));
            next_look_ = at + kLookAtQueue;
        }
        if (at >= next_sample_) {
            next_sample_ = at + from_seconds(config_.sample);
            sample();
        }
        if (now() >= agent_->due())
            apply(agent_->on_time(now()));

        nanos next = std::min({agent_->due(), next_sample_, next_look_});
        long wait_ms = std::clamp<long>((next - now()) / kMillisecond, 0, 1000);
        std::array<zmq_pollitem_t, 8> items = {{{transport_.inbox(), 0, ZMQ_POLLIN, 0},
                                                {transport_.door(), 0, ZMQ_POLLIN, 0},
                                                {transport_.monitor(), 0, ZMQ_POLLIN, 0},
                                                {nullptr, wake_, ZMQ_POLLIN, 0},
                                                {nullptr, signals_, ZMQ_POLLIN, 0},
                                                {nullptr, mover_.wake_fd(), ZMQ_POLLIN, 0},
                                                {nullptr, holders_.wake_fd(), ZMQ_POLLIN, 0},
                                                {nullptr, lifeline_, ZMQ_POLLIN, 0}}};
        const int watched = static_cast<int>(items.size()) - (lifeline_ < 0);
        if (zmq_poll(items.data(), watched, wait_ms) < 0 && zmq_errno() != EINTR)
            throw transport_error(zmq_strerror(zmq_errno()));
        transport_.answer_door();
        transport_.read_monitor();
        drain_inbox();
        if (items[5].revents != 0 || items[6].revents != 0)
            drain_mover();
        if (items[3].revents != 0)
            obey();
        if (items[4].revents != 0)
            leaving_ = true;
        if (items[7].revents != 0)
            watch_lifeline();
        if (watch_)
            watch_others();
    }
    spdlog::info("leaving");
    apply(agent_->leave());
    /* What was handed to ZeroMQ goes out in the background; it is given a moment. */
    usleep(200'000);
}

void node_daemon::drain_inbox()
{
    std::string bytes;
    for (std::size_t i = 0; i < kMostAtOnce && transport_.receive(bytes); i++) {
        message m;
        flaw f = door_->admit(bytes, now(), m);
        if (f == flaw::none)
            apply(agent_->on_message(now(), m));
        else
            spdlog::debug("message refused: {}", flaw_name(f));
    }
}

void node_daemon::drain_mover()
{
    for (background_mover *way :
         {static_cast<background_mover *>(&mover_), static_cast<background_mover *>(&holders_)}) {
        for (const msg::outcome &o : way->take())
            apply(agent_->on_outcome(now(), o));
    }
}

void node_daemon::obey()
{
    std::uint64_t count;
    (void)!read(wake_, &count, sizeof count);
    std::vector<std::string> commands;
    {
        std::lock_guard lock(commands_mutex_);
        commands.swap(commands_);
    }
    for (const std::string &command : commands) {
        spdlog::info("told to {}", command);
        if (command == "leave")
            leaving_ = true;
        else
            draining_ = command == "drain";
        next_sample_ = 0;
    }
}

/* ---- the world, once a second ------------------------------------------------ */

void node_daemon::sample()
{
    auto now_ns = static_cast<std::uint64_t>(now());
    outward_.kernel = load_.read(now_ns);
    read_ranks(now_ns);
    load_sample s;
    s.cpus = outward_.kernel.cpus;
    s.demand = outward_.kernel.runnable.value_or(0);
    s.speed = config_.speed > 0 ? config_.speed : speed_.at(now());
    s.free_bytes = outward_.kernel.free_bytes;
    s.cpu_pressure = outward_.kernel.cpu_pressure.value_or(0);
    s.memory_pressure = outward_.kernel.memory_pressure.value_or(0);
    s.steal = outward_.kernel.steal;
    s.draining = draining_;
    const bool was_draining = agent_->here().draining();
    apply(agent_->on_load(now(), s));
    if (draining_ != was_draining)
        save();

    outward_.now = now();
    outward_.wall_s = wall();
    outward_.strangers = transport_.strangers();
    outward_.dropped = transport_.dropped();
    outward_.sent = sequence_;
    outward_.profiles_refused = files_.refused();
    outward_.ranks_untimed = files_.untimed();
    outward_.held_unread = held_.unread();
    outward_.transparent = config_.transparent;
    web_->publish(make_pages(*agent_, *door_, outward_));
    if (record_)
        write_record(record_line(*agent_, outward_));
    if (save_failed_)
        save();
    transport_.tidy(now());
    watch_network();
    watch_ranks();
}

/** What comes by it is of no interest. */
/** Its pages name those that it is said to know: whoever hears that may look there at once. */
void node_daemon::watch_others()
{
    const auto alive = static_cast<std::size_t>(
        std::ranges::count_if(agent_->network().peers(),
                              [](const peer &p) { return p.node.state == member_state::alive; }));
    if (alive != watched_)
        web_->publish(make_pages(*agent_, *door_, outward_));
    watched_ = alive;
    watch_(alive);
}

void node_daemon::watch_lifeline()
{
    std::array<char, 256> ignored;
    const ssize_t got = read(lifeline_, ignored.data(), ignored.size());
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
        leaving_ = true;
}

/** Each of these once. */
void node_daemon::watch_ranks()
{
    if (files_.untimed() > 0 && !std::exchange(said_untimed_, true))
        spdlog::warn(
            "the kernel does not tell the processor time of {} ranks here (/proc/PID/fd and "
            "schedstat; are they in a container?): what an iteration takes them is not measured",
            files_.untimed());
    if (outward_.events_missed > 0 && !std::exchange(said_missed_, true))
        spdlog::warn(
            "ranks send more messages than are read in time: {} were missed, and groups are "
            "learned from the others alone",
            outward_.events_missed);
}

/** What is not as it should be between agents is said, once each time. */
void node_daemon::watch_network()
{
    if (transport_.is_full() && !said_full_)
        spdlog::warn("{} connections to us: no more are taken until some have ended",
                     transport_.inbound());
    said_full_ = transport_.is_full();
    const auto &network = agent_->network();
    std::vector<std::string> seeds = config_.logic.seeds;
    std::erase(seeds, config_.advertise);
    if (began_ == 0)
        began_ = now();
    if (said_alone_ || seeds.empty() || now() - began_ < kSeedsAnswer)
        return;
    said_alone_ = true;
    if (network.peers().empty())
        spdlog::warn("no agent answers at {} so far: is zcmd running there, with this key, and "
                     "does it listen at that "
                     "port (zcmd check)?",
                     fmt::join(seeds, ", "));
}

node_id node_daemon::node_of(const std::string &host) const
{
    if (host == config_.host)
        return agent_->network().self().id;
    const peer *p = agent_->network().find_host(host);
    return p == nullptr ? kNoNode : p->node.id;
}

void node_daemon::read_ranks(std::uint64_t now_ns)
{
    std::map<rank_key, rank_reading> found = files_.read(now_ns);
    if (config_.transparent != "no")
        add_held(found, held_.read(now_ns), config_.transparent == "observe");
    for (const auto &[key, reading] : outward_.ranks) {
        if (!found.contains(key))
            agent_->on_rank_gone(key);
    }
    for (const auto &[key, reading] : found)
        outward_.events_missed += reading.events_missed;
    outward_.ranks = std::move(found);
    std::map<job_id, std::vector<const rank_reading *>> jobs;
    for (const auto &[key, reading] : outward_.ranks)
        jobs[key.job].push_back(&reading);
    std::vector<job_id> ended;
    for (const auto &[id, view] : agent_->here().jobs()) {
        if (!jobs.contains(id) && agent_->moves().busy_with().empty())
            ended.push_back(id);
    }
    for (job_id id : ended)
        agent_->on_job_gone(id);
    for (const auto &[id, ranks] : jobs)
        tell_job(ranks);
}

void node_daemon::tell_job(const std::vector<const rank_reading *> &ranks)
{
    const rank_reading *newest = ranks[0];
    job_view view;
    view.job = newest->profile.key.job;
    for (const rank_reading *r : ranks) {
        if (r->profile.epoch > newest->profile.epoch)
            newest = r;
        view.busy = view.busy || r->busy;
        view.observe = view.observe || r->observe;
    }
    view.epoch = newest->profile.epoch;
    view.name = newest->job_name;
    view.placement.assign(newest->world, kNoNode);
    std::map<std::string, node_id> known;
    for (std::size_t i = 0; i < newest->host_of.size(); i++) {
        auto [at, is_new] = known.try_emplace(newest->host_of[i], kNoNode);
        if (is_new) {
            at->second = node_of(newest->host_of[i]);
            view.hosts.insert(newest->host_of[i]);
        }
        view.placement[i] = at->second;
    }
    node_id self = agent_->network().self().id;
    std::vector<zcp_event_t> events;
    for (const rank_reading *r : ranks) {
        if (r->profile.key.rank < view.placement.size())
            view.placement[r->profile.key.rank] = self;
        events.insert(events.end(), r->events.begin(), r->events.end());
    }
    view.transparent = newest->profile.transparent;
    if (view.transparent)
        view.epoch = 1; /* no other rank takes part in a move, so the job stays as it is */
    view.gateway = view.transparent || mover_.reaches(view.name) ? self : view.placement[0];
    view.gateway_host = newest->host_of.empty() ? "" : newest->host_of[0];
    const bool had_groups = !agent_->without_groups().contains(view.job);
    agent_->on_job(view);
    if (auto none = agent_->without_groups().find(view.job);
        had_groups && none != agent_->without_groups().end())
        spdlog::warn("job {} of {} ranks has no groups, its ranks move one by one: {}",
                     hex(view.job), view.placement.size(), std::strerror(none->second));
    nanos at = now();
    for (const rank_reading *r : ranks)
        agent_->on_rank(at, r->profile);
    std::stable_sort(events.begin(), events.end(), [](const zcp_event_t &a, const zcp_event_t &b) {
        return a.time_ns < b.time_ns;
    });
    apply(agent_->on_traffic(at, view.job, events));
}

/* ---- what the logic wants ------------------------------------------------------ */

void node_daemon::save()
{
    save_failed_ = !replace_file(config_.state_file, agent_->state_text() + "\n");
    if (save_failed_)
        spdlog::error("{}: {}", config_.state_file, std::strerror(errno));
}

void node_daemon::apply(effects &&out)
{
    if (out.save)
        save();
    for (outbound &o : out.send) {
        /* What must not be forgotten is not on disk: then it is not said either. */
        const auto *lent = std::get_if<msg::lent>(&o.body);
        if (!save_failed_ ||
            !(std::holds_alternative<msg::ask>(o.body) || (lent != nullptr && lent->granted)))
            send(std::move(o));
    }
    for (const msg::ask &a : out.ask) {
        const job_view *job = agent_->here().job(a.job);
        if (save_failed_ || job == nullptr) {
            msg::outcome o =
                refused(a, save_failed_ ? "the state file cannot be written" : "no such job here");
            o.what = msg::verdict::unknown; /* which is no refusal of the ranks */
            apply(agent_->on_outcome(now(), o));
        } else
            ask_job(a, *job);
    }
    for (const msg::query &q : out.query) {
        if (holders_.knows(q.txn))
            holders_.query(q);
        else
            mover_.query(q);
    }
}

msg::outcome node_daemon::refused(const msg::ask &wanted, const std::string &why) const
{
    return {wanted.txn, wanted.job, msg::verdict::refused, 0, 0, {}, why};
}

/** Where zc-hold --listen is on the node of the agent at @address. */
std::string node_daemon::holder_at(const std::string &address) const
{
    std::string place = address.substr(0, address.rfind(':'));
    if (place.starts_with("tcp://"))
        place = place.substr(6);
    return config_.holder_port == 0 ? place : fmt::format("{}:{}", place, config_.holder_port);
}

/** Of a rank below zc-hold. */
held_errand node_daemon::errand_of(const rank_key &rank) const
{
    held_errand one;
    const rank_origin *origin = held_.origin_of(rank);
    if (origin == nullptr) {
        one.why_not = "the rank has ended, or is gone";
        return one;
    }
    one.origin = *origin;
    if (origin->home == host_name())
        return one;
    if (const peer *home = agent_->network().find_host(origin->home))
        one.origin_place = holder_at(home->node.address);
    else
        one.why_not = "no agent is known on " + origin->home +
                      ", where the rank was started and its zc-hold is";
    return one;
}

/** By the way that its ranks offer. */
void node_daemon::ask_job(const msg::ask &wanted, const job_view &job)
{
    if (!job.transparent)
        return mover_.ask(wanted, job.name);
    const peer *target = agent_->network().find(wanted.target);
    if (target == nullptr || wanted.ranks.empty()) {
        msg::outcome o = refused(wanted, target == nullptr ? "the target's agent is not known"
                                                           : "no rank is named");
        o.what = msg::verdict::failed; /* that is no fault of the ranks */
        return apply(agent_->on_outcome(now(), o));
    }
    std::vector<held_errand> errands;
    for (rank_id rank : wanted.ranks) {
        errands.push_back(errand_of({wanted.job, rank}));
        errands.back().target_place = holder_at(target->node.address);
    }
    holders_.ask(wanted, errands);
}

void node_daemon::send(outbound &&o)
{
    std::string address = std::move(o.address);
    if (o.to != kNoNode) {
        if (const peer *p = agent_->network().find(o.to))
            address = p->node.address;
    }
    if (address.empty())
        return;
    message m{agent_->network().self().id, agent_->incarnation(), ++sequence_, std::move(o.body)};
    transport_.send(now(), address, encode(m));
}

void node_daemon::note(const record &r)
{
    std::string ranks = fmt::format("{}", fmt::join(r.ranks, ","));
    spdlog::log(r.what == "refused" ? spdlog::level::debug : spdlog::level::info, "{}{}{}{}: {}",
                r.what, ranks.empty() ? "" : " rank " + ranks,
                r.job != 0 ? " of job " + hex(r.job) : "",
                r.to_host.empty() ? "" : " to " + r.to_host, r.why);
    if (record_)
        write_record(record_line(r, wall(), config_.host));
}

void node_daemon::write_record(const std::string &line)
{
    /* One write per line, so that readers never see half of one. */
    std::string text = line + "\n";
    if (std::fwrite(text.data(), 1, text.size(), record_.get()) != text.size() ||
        std::fflush(record_.get()) != 0) {
        spdlog::error("{}: {}; no longer recorded", config_.record_file, std::strerror(errno));
        record_.reset();
    }
}

} // namespace zc::agent

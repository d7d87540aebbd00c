/* SPDX-License-Identifier: BSD-3-Clause */
#include "arrival.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <spdlog/spdlog.h>
#include <zmq.h>

#include "error.h"
#include "pagemap.h"
#include "process_tree.h"
#include "time_namespace.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

constexpr int kTurn = 50;  /* ms */
constexpr int kMoving = 5; /* while ZeroMQ may be able to take what it could not */
constexpr const char *kUnfillable = "the rank cannot be given its memory";

ino_t inode_of(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

/** Of tcp://ADDRESS:PORT, in figures, as ZeroMQ tells where it listens. */
std::string address_in(const std::string &endpoint)
{
    const std::size_t begin = endpoint.find("//") + 2;
    return endpoint.substr(begin, endpoint.rfind(':') - begin);
}

/** What of its memory it has; 0: it is not there yet. */
std::uint64_t resident_kib(pid_t pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
    std::uint64_t all = 0, resident = 0;
    return file >> all >> resident ? resident * static_cast<std::uint64_t>(getpagesize()) >> 10 : 0;
}

} // namespace

arrival::arrival(settings how, network &net, const std::string &address, promised_room promised)
    : how_(std::move(how)), net_(net), origin_(net.listen(ZMQ_DEALER, "tcp://" + address + ":*")),
      images_(std::in_place), receiver_(images_->path()), promised_(std::move(promised)),
      relay_(loop_, streams_)
{
    image_.emplace(loop_, address_in(endpoint_of(origin_.socket())), key_);
    loop_.watch(net_.door().socket(), [this] { net_.door().answer(); });
    loop_.watch(origin_.socket(), [] {});
    loop_.watch(signals_.fd(), POLLIN, [this] {
        while (const int signal = signals_.next()) {
            if (signal == SIGCHLD)
                child_ended();
        }
    });
}

nlohmann::json arrival::endpoints() const
{
    return {{"line", endpoint_of(origin_.socket())},
            {"image", image_->endpoint()},
            {"key", key_.text()}};
}

void arrival::give_up(const std::string &why)
{
    spdlog::error("{}", why);
    say({{"said", "failed"}, {"why", why}});
}

void arrival::take_image()
{
    if (state_ != state::WAITING)
        return;
    try {
        const auto manifest = receiver_.take(image_->in());
        image_->acknowledge();
        if (manifest)
            restore(*manifest);
    } catch (const std::exception &problem) {
        state_ = state::ENDING;
        give_up(reason_of(problem));
    }
}

/** Others are promised what is left. */
void arrival::note_taken()
{
    if (promised_.fd() < 0)
        return;
    if (state_ == state::WAITING)
        promised_.came(receiver_.kept() >> 10);
    else if (state_ == state::RESTORING || (state_ != state::ENDING && !filled_))
        promised_.rank_has(resident_kib(pid_));
    else
        promised_ = promised_room();
}

void arrival::restore(const nlohmann::json &manifest)
{
    pid_ = manifest.at("pid");
    self_ = read_mark(manifest.value("mark", ""));
    if (!manifest.at("streams").is_null())
        streams_.restore(manifest.at("streams"));
    for (const auto &each : manifest.at("ends"))
        new_ends_.emplace_back(each);
    since_ = clock::now();
    memory_ = receiver_.take_memory(left_out(images_->path(), pid_));
    filled_ = memory_.is_empty();
    promised_.rank_has(0); /* before it may take the place of the store */
    if (filled_)
        receiver_.forget_store();
    else
        begin_filling();
    std::function<void()> clocks;
    if (geteuid() != 0 && makes_time_namespaces())
        clocks = [then = clock_readings{
                      std::chrono::nanoseconds(manifest.at("monotonic_ns").get<std::int64_t>()),
                      std::chrono::nanoseconds(manifest.at("boottime_ns").get<std::int64_t>())}] {
            go_on_from(then);
        };
    criu_ = std::make_unique<criu_run>(how_.criu, "restore", images_->path(),
                                       restore_options(new_ends_, filler_ != nullptr), clocks);
    state_ = state::RESTORING;
}

void arrival::begin_filling()
{
    filler_ = std::make_unique<page_filler>(images_->path());
    loop_.watch(filler_->fd(), POLLIN, [this] { fill(); });
}

/** CRIU has connected, or has sent what the filler needs. */
void arrival::fill()
{
    loop_.forget(filler_->fd());
    try {
        if (filler_->is_connected()) {
            filler_->start(receiver_.store(), std::exchange(memory_, {}));
            receiver_.forget_store();
        } else {
            filler_->accept();
            loop_.watch(filler_->fd(), POLLIN, [this] { fill(); });
        }
    } catch (const std::exception &problem) {
        spdlog::error("{}", reason_of(problem));
        cannot_fill();
    }
}

void arrival::filler_ended(bool well)
{
    if (!well)
        return cannot_fill();
    filled_ = true;
    filler_.reset();
    obey_later();
}

/** The rank does not run without some of its memory. As long as the filler is there the rank waits,
 * and sees no page of zeros. */
void arrival::cannot_fill()
{
    unfillable_ = true;
    if (state_ == state::RESTORING) {
        criu_->finish(); /* child_ended() does the rest */
    } else if (holder_ && !status_) {
        give_up(kUnfillable);
        end_tree(pid_);
    }
}

/** Or it will have, as far as can be told when CRIU has ended. */
bool arrival::has_memory() const
{
    return !unfillable_ && (filled_ || (filler_ && filler_->is_restored()));
}

/** CRIU, at first, would go on. Its process may be another's, if CRIU has made none. */
void arrival::end_half_restored()
{
    criu_.reset();
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0)
        end_tree(pid_);
}

void arrival::obey_later()
{
    for (const nlohmann::json &request : std::exchange(later_, {}))
        obey(request);
}

/** Stopped, until it has the token. */
void arrival::restored()
{
    std::vector<end> ends;
    descriptor orders;
    relay_.stop();
    for (new_end &each : new_ends_) {
        each.what.inode = inode_of(each.theirs.fd);
        each.theirs = descriptor{};
        ends.push_back(each.what);
        if (each.what.stream == stream_id::control)
            orders = std::move(each.ours);
        else
            relay_.add(std::move(each.ours), each.what, each.what.is_written, each.what.is_read);
    }
    new_ends_.clear();
    images_.reset();
    origin_.attach(&streams_);
    holder_.emplace(loop_, how_, *this, rank_process(pid_), std::move(orders), std::move(ends),
                    holder::state::SENT, self_);
    state_ = state::RESTORED;
    const auto ms = std::chrono::duration<double, std::milli>(clock::now() - since_).count();
    say({{"said", "restored"}, {"ms", ms}});
}

nlohmann::json arrival::freeze(const std::vector<end> &ends)
{
    relay_.drain();
    relay_.stop();
    origin_.attach(nullptr);
    nlohmann::json halves = nlohmann::json::array();
    for (const end &each : ends) {
        const descriptor theirs = taken_from(holder_->rank().pid(), each);
        if (theirs.fd >= 0)
            halves.push_back(to_json(each, peek(theirs.fd, each)));
    }
    return {{"ends", halves}, {"streams", streams_.save()}};
}

void arrival::warn(const std::string &text)
{
    spdlog::warn("rank process {}: {}", pid_, text);
}

void arrival::thaw()
{
    relay_.resume();
    origin_.attach(&streams_);
    state_ = state::HOLDING;
}

void arrival::obey(const nlohmann::json &request)
{
    const std::string what = request.value("do", "");
    if (what == "end") {
        over_ = true;
    } else if (what == "go" && state_ == state::RESTORED) {
        spdlog::info("rank process {} has the token {}", pid_,
                     request.at("incarnation").get<std::uint64_t>());
        image_.reset();
        if (filler_)
            filler_->rank_runs();
        holder_->obey({{"do", "thaw"}, {"incarnation", request.at("incarnation")}});
    } else if (what == "signal" && holder_) {
        holder_->rank().pass_on(request.at("number"));
    } else if (what == "broken" && holder_) {
        relay_.close_reading(static_cast<stream_id>(request.at("stream").get<int>()));
    } else if (filler_) {
        later_.push_back(request); /* it would be dumped without what is missing */
    } else if (holder_ && state_ == state::HOLDING) {
        holder_->obey(request);
    }
}

void arrival::child_ended()
{
    if (filler_) {
        if (const std::optional<bool> well = filler_->result())
            filler_ended(*well);
    }
    if (state_ == state::RESTORING) {
        const std::optional<bool> well = criu_->result();
        if (!well)
            return;
        if (*well && has_memory()) {
            criu_.reset();
            restored();
        } else {
            state_ = state::ENDING;
            give_up(*well || unfillable_ ? kUnfillable : criu_->reason());
            end_half_restored();
        }
        return;
    }
    if (holder_ && !status_) {
        if (const std::optional<int> status = holder_->child_ended())
            ended(*status);
    }
    /* What the filler has shared its descriptors with; and the first process of a PID namespace has
     * the orphans, too. */
    siginfo_t other{};
    while (waitid(P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT) == 0 && other.si_pid > 0 &&
           other.si_pid != pid_ && !criu_ && !(filler_ && other.si_pid == filler_->pid()))
        waitpid(other.si_pid, nullptr, 0);
}

void arrival::ended(int status)
{
    status_ = status;
    state_ = state::ENDING;
    relay_.resume();
    relay_.drain();
}

int arrival::run()
{
    while (!over_) {
        relay_.update();
        const bool moving = state_ != state::HOLDING || holder_->now() != holder::state::RUNNING;
        const bool takes = state_ == state::WAITING && image_ && image_->has_more();
        const bool busy = takes || (holder_ && holder_->is_busy());
        loop_.turn(busy ? 0 : moving ? kMoving : kTurn);
        if (image_)
            image_->pump();
        take_image();
        note_taken();
        if (holder_ && !status_)
            holder_->step();
        for (const stream_id which : relay_.take_broken())
            say({{"said", "broken"}, {"stream", static_cast<int>(which)}});
        if (status_ && !told_ && streams_.is_done()) {
            say({{"said", "exited"}, {"status", *status_}});
            told_ = true;
        }
        origin_.pump();
        for (const nlohmann::json &request : origin_.hear())
            obey(request);
        if (told_ && origin_.is_done())
            over_ = true;
        if (origin_.silence() > how_.patience) {
            spdlog::error("the origin has given no sign for {} s: the rank ends",
                          how_.patience.count());
            over_ = true;
        }
    }
    origin_.pump(); /* that the last request was heard */
    if (!holder_)
        end_half_restored();
    else if (filler_)
        end_tree(pid_);
    if (holder_ && !status_)
        holder_->rank().kill_and_reap();
    return status_ ? 0 : 1;
}

} // namespace zc::holder

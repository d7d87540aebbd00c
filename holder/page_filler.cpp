/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_filler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <list>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "error.h"
#include "passed_descriptor.h"
#include "process_tree.h"
#include "rank_memory.h"
#include "rank_process.h"

namespace zc::holder {
namespace {

constexpr const char *kSocket = "lazy-pages.socket";  /* CRIU's name for it */
constexpr std::uint32_t kAllElseIsThere = 0x52535446; /* CRIU's word for it */
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kAtOnce = 64 << 10; /* a page that is touched waits for that at most */
constexpr timeval kMoment{5, 0};            /* for what CRIU sends at once */
constexpr int kMomentMs = 5000;
constexpr int kMostHeard = 256; /* of what is touched, before more is filled in order */

constexpr char kRestored = 'r', kRuns = 'R'; /* between this object and the process */

/** A rank's address space, or that of a child which it has made meanwhile. */
struct address_space {
    descriptor faults;
    bool is_of_rank = false;
    page_places pending;                /* what it is still to get, as its memory is now */
    std::vector<std::uint64_t> put_off; /* pages that wait until the events have been heard */
};

/** In a process of its own: no allocation here may fail for a reason that the parent has. */
class filling {
  public:
    filling(pid_t rank, const descriptor &faults, const descriptor &connection, int holder,
            const char *store)
        : rank_(rank), connection_(connection.fd), holder_(holder), store_(store)
    {
        spaces_.emplace_back();
        spaces_.back().is_of_rank = true;
        spaces_.back().faults = descriptor{dup(faults.fd)};
    }
    page_places &pending() { return spaces_.front().pending; }

    /** Whether all pages are there, or no process is that needs one. */
    bool run()
    {
        while (!is_done()) {
            if (!wait())
                return false;
            for (auto at = spaces_.begin(); at != spaces_.end();) {
                const bool well = hear(*at) && (!restored_ || fill_some(*at));
                if (!well && errno != ESRCH) /* it has ended */
                    return false;
                at = well ? ++at : spaces_.erase(at);
            }
        }
        return true;
    }

  private:
    enum class given { YES, LATER, NO };

    /** A process that has all its pages is heard as long as another has not: what it frees, moves
     * or forks it waits with until somebody has heard of it. */
    bool is_done() const
    {
        return restored_ &&
               std::all_of(spaces_.begin(), spaces_.end(),
                           [](const address_space &each) { return each.pending.is_empty(); });
    }

    /** Until something is touched, as long as the rank is not restored. */
    bool wait()
    {
        if (restored_)
            return true;
        if (spaces_.empty())
            return false;
        std::array<pollfd, 2> those = {
            {{connection_, POLLIN, 0}, {spaces_.front().faults.fd, POLLIN, 0}}};
        if (poll(those.data(), those.size(), -1) < 0 && errno != EINTR)
            return false;
        std::uint32_t word = 0;
        if (those[0].revents == 0)
            return true;
        restored_ = recv(connection_, &word, sizeof word, MSG_WAITALL) == sizeof word &&
                    word == kAllElseIsThere;
        return restored_ && tell_holder_restored();
    }

    /**
     * The kernel tells what is touched before it tells events, and as long as there is an event
     * that has not been heard it takes no page. So what is touched meanwhile is put off: if it was
     * woken at once it would be touched again, and no event would ever be heard.
     */
    bool hear(address_space &of)
    {
        uffd_msg said;
        for (int heard = 0; heard < kMostHeard; heard++) {
            if (read(of.faults.fd, &said, sizeof said) != sizeof said)
                return errno == EAGAIN && wake_those_put_off(of);
            switch (said.event) {
            case UFFD_EVENT_PAGEFAULT:
                if (!answer(of, said.arg.pagefault.address & ~(kPage - 1)))
                    return false;
                break;
            case UFFD_EVENT_UNMAP:
            case UFFD_EVENT_REMOVE:
                of.pending.drop(said.arg.remove.start, said.arg.remove.end - said.arg.remove.start);
                break;
            case UFFD_EVENT_REMAP:
                of.pending.move(said.arg.remap.from, said.arg.remap.to, said.arg.remap.len);
                break;
            case UFFD_EVENT_FORK:
                if (!add_child(of, descriptor{static_cast<int>(said.arg.fork.ufd)}))
                    return false;
                break;
            default:
                errno = EBADMSG;
                return false;
            }
        }
        return true;
    }

    /**
     * It has what its parent has, but for memory that madvise(2) has marked MADV_WIPEONFORK: there
     * it has zeros. Nothing tells which process has forked, so those of a child's child are not
     * known: if there may be such memory the filling fails.
     */
    bool add_child(const address_space &of, descriptor faults)
    {
        spaces_.emplace_back();
        address_space &child = spaces_.back();
        child.faults = std::move(faults);
        child.pending = of.pending;
        if (child.pending.is_empty())
            return true;
        for (const pid_t each : of.is_of_rank ? std::vector{rank_} : tree_of(rank_)) {
            for (const page_range &wiped : wiped_on_fork(each)) {
                if (!of.is_of_rank && child.pending.has_any(wiped.begin, wiped.end - wiped.begin)) {
                    errno = ENOTSUP;
                    return false;
                }
                child.pending.drop(wiped.begin, wiped.end - wiped.begin);
            }
        }
        return true;
    }

    /** It may have ended: then the kernel ends the rank. */
    bool tell_holder_restored() const
    {
        return send(holder_, &kRestored, 1, MSG_NOSIGNAL) == 1 || errno == EPIPE ||
               errno == ECONNRESET;
    }

    /** Before that the rank is stopped: nothing but this can have given it a page or unmapped one.
     */
    bool rank_runs()
    {
        char byte = 0;
        runs_ = runs_ || (recv(holder_, &byte, 1, MSG_DONTWAIT) == 1 && byte == kRuns);
        return runs_;
    }

    /** Others may wait for the same page, or for what is unmapped by now. */
    static bool wake(const address_space &of, std::uint64_t address)
    {
        uffdio_range those{address, kPage};
        return ioctl(of.faults.fd, UFFDIO_WAKE, &those) == 0 || errno == ENOENT || errno == EINVAL;
    }

    static bool wake_those_put_off(address_space &of)
    {
        const std::vector<std::uint64_t> those = std::exchange(of.put_off, {});
        return std::all_of(those.begin(), those.end(),
                           [&](std::uint64_t address) { return wake(of, address); });
    }

    /** The rank waits for this page. */
    bool answer(address_space &of, std::uint64_t address)
    {
        const std::optional<std::uint64_t> from = of.pending.find(address);
        switch (from ? copy(of, {address, kPage, *from}) : give_zeros(of, address)) {
        case given::YES:
            return wake(of, address);
        case given::LATER:
            of.put_off.push_back(address);
            return true;
        case given::NO:
            break;
        }
        return false;
    }

    /** The image has nothing of it. */
    static given give_zeros(const address_space &of, std::uint64_t address)
    {
        uffdio_zeropage zero{{address, kPage}, 0, 0};
        if (ioctl(of.faults.fd, UFFDIO_ZEROPAGE, &zero) == 0 || errno == EEXIST || errno == ENOENT)
            return given::YES;
        return errno == EAGAIN ? given::LATER : given::NO;
    }

    bool fill_some(address_space &of)
    {
        return of.pending.is_empty() || copy(of, of.pending.first(kAtOnce)) != given::NO;
    }

    given copy(address_space &of, stored_pages what)
    {
        uffdio_copy order{};
        order.dst = what.address;
        order.src = reinterpret_cast<std::uint64_t>(store_ + what.from);
        order.len = what.bytes;
        const int result = ioctl(of.faults.fd, UFFDIO_COPY, &order);
        const int why = errno;
        if (order.copy > 0)
            of.pending.drop(what.address, static_cast<std::uint64_t>(order.copy));
        if (result == 0 || order.copy > 0)
            return given::YES;
        if (why == EAGAIN) /* there is an event to be heard */
            return given::LATER;
        if (why == ENOENT && what.bytes > kPage) { /* they are of two mappings */
            what.bytes = kPage;
            return copy(of, what);
        }
        const bool may_be = (why == EEXIST || why == ENOENT) && rank_runs();
        errno = why;
        if (!may_be)
            return given::NO;
        of.pending.drop(what.address, kPage); /* it is there, or unmapped */
        return given::YES;
    }

    pid_t rank_;
    int connection_, holder_;
    const char *store_;
    std::list<address_space> spaces_;
    bool restored_ = false, runs_ = false;
};

/**
 * Makes a process that shares the descriptors of this one, those included which the kernel adds
 * when the rank forks: at no moment has one process alone a descriptor. It ends when the holder
 * closes its end of the socket, or ends. It is a child of the holder, as this one is.
 */
bool share_descriptors(const descriptor &holder)
{
    const long made = syscall(SYS_clone, CLONE_FILES | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (made != 0)
        return made > 0;
    pollfd closed{holder.fd, 0, 0};
    while (poll(&closed, 1, -1) <= 0)
        continue;
    _exit(0); /* what it closed itself would be closed for both */
}

/** Never returns. */
[[noreturn]] void fill(pid_t rank, const descriptor &faults, const descriptor &connection,
                       const descriptor &holder, const descriptor &store, page_places &memory)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    /* Each child of the rank takes a descriptor. */
    rlimit most{};
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_NOFILE, &most);
    }
    /* The streams of the rank must have an end when the rank and its holder close them. */
    close_others({faults.fd, connection.fd, holder.fd, store.fd});
    struct stat found;
    if (!share_descriptors(holder) || fstat(store.fd, &found) != 0)
        _exit(1);
    const auto bytes = static_cast<std::size_t>(found.st_size);
    void *const mapped =
        bytes > 0 ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED, store.fd, 0) : nullptr;
    if (mapped == MAP_FAILED)
        _exit(1);
    bool well = false;
    try {
        filling one(rank, faults, connection, holder.fd, static_cast<const char *>(mapped));
        well = memory.lie_in(bytes);
        one.pending() = std::move(memory);
        well = well && one.run();
    } catch (const std::exception &) {
        well = false; /* no memory */
    }
    _exit(well ? 0 : 1);
}

} // namespace

bool page_filler::is_possible()
{
    const descriptor made{static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))};
    uffdio_api api{UFFD_API,
                   UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
                       UFFD_FEATURE_EVENT_UNMAP,
                   0};
    return made.fd >= 0 && ioctl(made.fd, UFFDIO_API, &api) == 0;
}

page_filler::page_filler(const std::string &directory)
    : listening_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}
{
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    const std::string path = directory + "/" + kSocket;
    if (path.size() >= sizeof place.sun_path)
        throw error(ENAMETOOLONG, path);
    path.copy(place.sun_path, path.size());
    if (listening_.fd < 0 ||
        bind(listening_.fd, reinterpret_cast<const sockaddr *>(&place), sizeof place) != 0 ||
        listen(listening_.fd, 1) != 0)
        throw_errno(errno, path);
}

page_filler::~page_filler()
{
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void page_filler::accept()
{
    connection_ = descriptor{accept4(listening_.fd, nullptr, nullptr, SOCK_CLOEXEC)};
    if (connection_.fd < 0)
        throw_errno(errno, kSocket);
    setsockopt(connection_.fd, SOL_SOCKET, SO_RCVTIMEO, &kMoment, sizeof kMoment);
    listening_ = descriptor{};
}

void page_filler::start(const descriptor &store, page_places memory)
{
    std::int32_t pid = 0;
    if (recv(connection_.fd, &pid, sizeof pid, MSG_WAITALL) != sizeof pid || pid <= 0)
        throw error(EBADMSG, "CRIU does not say whose memory it is");
    faults_ = take_passed_descriptor(connection_.fd);
    if (faults_.fd < 0)
        throw error(EBADMSG, "CRIU sends no userfaultfd");
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        throw_errno(errno, "socketpair");
    process_ = descriptor{pair[0]};
    const descriptor theirs{pair[1]};
    pid_ = fork();
    if (pid_ < 0)
        throw_errno(errno, "fork");
    if (pid_ == 0)
        fill(pid, faults_, connection_, theirs, store, memory);
    end_ = descriptor{static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))};
    connection_ = descriptor{};
}

bool page_filler::is_restored() const
{
    std::array<pollfd, 2> those = {{{process_.fd, POLLIN, 0}, {end_.fd, POLLIN, 0}}};
    char byte = 0;
    return process_.fd >= 0 && poll(those.data(), those.size(), kMomentMs) > 0 &&
           recv(process_.fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == kRestored;
}

void page_filler::rank_runs() const
{
    send(process_.fd, &kRuns, 1, MSG_NOSIGNAL);
}

std::optional<bool> page_filler::result()
{
    int status = 0;
    if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_)
        return {};
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace zc::holder

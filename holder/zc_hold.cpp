/* SPDX-License-Identifier: BSD-3-Clause */

/* zc-hold: the parent of a rank that may move. See zc-hold(1). */
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "error.h"
#include "keys.h"
#include "listener.h"
#include "origin.h"
#include "spawned.h"

using namespace zc::holder;

namespace {

enum {
    kDone = 0,
    kFailed = 1,
    kUsage = 2,
    kNoRank = 3,
    kBadKey = 4,
    kNotExecutable = 126,
    kNotFound = 127
};
constexpr int kMoveSeconds = 3600;
constexpr int kStatusSeconds = 10;

/** The command line. */
struct arguments {
    settings how;
    std::vector<std::string> words;
    std::string listen, arrival, to, rank, folders;
    int ready = -1, promise = -1, pid = 0;
    long patience = 60;
    double within_s = 0;
    bool status = false, json = false, spawned = true;
};

void add_options(CLI::App &app, arguments &a)
{
    /* These may come twice: once more where a script of zc-hold's name gives them as well. */
    app.add_option("--key", a.how.key_file, "key pair, as zcmd keygen makes it")
        ->take_last()
        ->capture_default_str();
    app.add_option("--criu", a.how.criu, "the program CRIU")
        ->take_last()
        ->envname("ZC_CRIU")
        ->capture_default_str();
    app.add_option("--patience", a.patience, "seconds without a sign of another host")
        ->take_last()
        ->check(CLI::Range(1, 86400))
        ->capture_default_str();
    app.add_flag("!--no-pre-copy", a.how.pre_copy, "send no memory while the rank still runs");
    app.add_flag("--lazy", a.how.lazy,
                 "let a rank go on at the other host while it is given its memory there");
    app.add_flag("!--no-tracking", a.how.tracking,
                 "with --lazy: read all memory of a rank that stands still, as the kernel is not "
                 "asked what the rank writes");
    app.add_flag(
        "!--no-user-namespace", a.how.user_namespace,
        "leave the rank of a user without privilege in the host's user namespace, where it "
        "cannot move");
    app.add_option("--job", a.how.job, "what zcctl calls the job, the same for all its ranks");
    app.add_flag(
        "!--no-spawned", a.spawned,
        "what the rank spawns (MPI_Comm_spawn) is not below zc-hold: it cannot move, nor can "
        "the rank then");
    app.add_option("--path", a.folders, "folders, with : between them, one of which has PROGRAM");
    app.add_option("--spawned-by", a.how.spawned_by, "the job that has spawned this one");
    app.add_option("--listen", a.listen, "take ranks of other hosts, at this HOST or HOST:PORT");
    app.add_flag("--status", a.status, "print where the ranks of this host's zc-hold are, and end");
    app.add_option("--move", a.rank, "move this rank, of those of --status, and end");
    app.add_option("--to", a.to, "to the HOST or HOST:PORT where zc-hold --listen is");
    app.add_option("--within", a.within_s,
                   "with --move: let it take no longer than these seconds, if it can be")
        ->check(CLI::Range(0.1, 86400.0));
    app.add_option("--pid", a.pid, "the zc-hold of this process number, if several have the rank");
    app.add_flag("--json", a.json, "print answers as JSON");
    app.add_option("--arrival", a.arrival)->group("");
    app.add_option("--ready", a.ready)->group("");
    app.add_option("--promise", a.promise)->group("");
}

/** An exit status, if there is nothing more to do. */
std::optional<int> parse(int argc, char **argv, arguments &a)
{
    CLI::App app("Parent of a rank that may move: mpiexec -n N zc-hold PROGRAM [ARGUMENT...]",
                 "zc-hold");
    app.set_version_flag("--version", ZC_VERSION);
    app.prefix_command();
    a.how.key_file = zc::default_key_file();
    add_options(app, a);
    app.footer(
        "exit status: that of PROGRAM; 1 failed; 2 usage; 3 no such rank; 4 bad key; 126 PROGRAM "
        "cannot be executed; 127 PROGRAM is not there");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kDone : kUsage;
    }
    a.how.patience = std::chrono::seconds(a.patience);
    a.how.self = a.spawned ? argv[0] : "";
    a.words = app.remaining();
    const bool ended = !a.words.empty() && a.words.front() == "--";
    if (ended)
        a.words.erase(a.words.begin());
    const bool other = !a.listen.empty() || !a.arrival.empty() || a.status || !a.rank.empty();
    const bool of_program = !a.folders.empty() || !a.how.spawned_by.empty();
    const bool is_option = !ended && !a.words.empty() && a.words.front().starts_with("-");
    const char *wrong = is_option                          ? "no such option"
                        : other && !a.words.empty()        ? "not with a PROGRAM"
                        : !other && a.words.empty()        ? "no PROGRAM"
                        : a.rank.empty() != a.to.empty()   ? "--move and --to go together"
                        : a.within_s > 0 && a.rank.empty() ? "--within goes with --move"
                        : std::isnan(a.within_s)           ? "--within is no number"
                        : other && of_program ? "--path and --spawned-by go with a PROGRAM"
                                              : nullptr;
    if (wrong == nullptr)
        return {};
    fmt::print(stderr, "zc-hold: {}{}; see zc-hold --help\n", wrong,
               a.words.empty() ? "" : ": " + a.words.front());
    return kUsage;
}

/** In the place of this process. Throws error if it cannot be executed. */
[[noreturn]] void become(const std::vector<std::string> &words)
{
    execvp(words.front().c_str(), arguments_of(words).data());
    zc::throw_errno(errno, words.front());
}

int hold(const arguments &a)
{
    std::vector<std::string> words = a.words;
    if (!a.folders.empty())
        words.front() = program_in(a.folders, words.front());
    if (is_held())
        become(words);
    signal_source signals;
    launched what = start_rank(words, a.how, signals);
    int status;
    {
        origin one(a.how, std::move(what), signals);
        status = one.run();
    }
    end_as(status);
}

void begin_log(const char *name)
{
    spdlog::set_default_logger(spdlog::stderr_logger_st(name));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %n[%P] %l: %v");
}

/** The sockets of those that have the rank that is asked for, or of all, with what they say. */
std::vector<std::pair<std::string, nlohmann::json>> found(const arguments &a)
{
    std::vector<std::pair<std::string, nlohmann::json>> all;
    for (const std::string &path : request_sockets()) {
        try {
            nlohmann::json said = request(path, {{"do", "status"}}, kStatusSeconds);
            if ((a.rank.empty() || said.at("rank") == a.rank) &&
                (a.how.job.empty() || said.at("job") == a.how.job) &&
                (a.pid == 0 || said.at("pid") == a.pid))
                all.emplace_back(path, std::move(said));
        } catch (const zc::error &) {
            continue; /* it has ended meanwhile, or was killed and has left its socket */
        }
    }
    return all;
}

int print_status(const arguments &a)
{
    for (const auto &[path, said] : found(a)) {
        if (a.json)
            fmt::print("{}\n", said.dump());
        else
            fmt::print("rank {} of {} pid {} incarnation {} {}{}\n",
                       said.at("rank").get<std::string>(), said.at("job").get<std::string>(),
                       said.at("pid").get<int>(), said.at("incarnation").get<std::uint64_t>(),
                       said.at("place").get<std::string>().empty()
                           ? "here"
                           : said.at("place").get<std::string>(),
                       said.at("moving").get<bool>() ? ", moving" : "");
    }
    return kDone;
}

int move(const arguments &a)
{
    const auto all = found(a);
    if (all.size() != 1) {
        fmt::print(stderr, "zc-hold: {} of this user's on this host have rank {}{}\n",
                   all.empty() ? "none" : "several", a.rank,
                   all.empty() ? "" : ": --job or --pid says which");
        return kNoRank;
    }
    nlohmann::json what = {{"do", "move"}, {"to", a.to}};
    if (a.within_s > 0)
        what["within_ms"] = std::llround(a.within_s * 1e3);
    const nlohmann::json said =
        request(all.front().first, what, kMoveSeconds + static_cast<int>(a.within_s));
    const double late_ms = said.value("late_ms", 0.0);
    const bool ok = said.value("ok", false);
    if (a.json)
        fmt::print("{}\n", said.dump());
    else if (ok)
        fmt::print("rank {} is at {}, after {:.0f} ms{}{}\n", a.rank, a.to, said.value("ms", 0.0),
                   said.contains("copy_ms")
                       ? fmt::format(", {:.0f} of which it ran", said.value("copy_ms", 0.0))
                       : "",
                   late_ms > 0 ? fmt::format(", {:.0f} more than --within", late_ms) : "");
    else
        fmt::print(stderr, "zc-hold: rank {} is where it was: {}\n", a.rank, said.value("why", ""));
    return ok ? kDone : kFailed;
}

int carry_out(const arguments &a)
{
    if (a.status)
        return print_status(a);
    if (!a.rank.empty())
        return move(a);
    if (a.listen.empty() && a.arrival.empty())
        return hold(a);
    begin_log("zc-hold");
    network net(zc::read_keys(a.how.key_file));
    if (!a.arrival.empty())
        run_arrival(a.how, net, a.arrival, a.ready, a.promise);
    listener(a.how, net, a.listen).run();
    return kDone;
}

} // namespace

int main(int argc, char **argv)
{
    arguments a;
    if (auto status = parse(argc, argv, a))
        return *status;
    try {
        return carry_out(a);
    } catch (const zc::key_error &e) {
        fmt::print(stderr, "zc-hold: {}\n", e.what());
        return kBadKey;
    } catch (const zc::error &e) {
        fmt::print(stderr, "zc-hold: {}\n", e.what());
        const bool held = !a.words.empty();
        return held && e.code() == ENOENT                            ? kNotFound
               : held && (e.code() == EACCES || e.code() == ENOEXEC) ? kNotExecutable
                                                                     : kFailed;
    } catch (const std::exception &e) {
        fmt::print(stderr, "zc-hold: {}\n", e.what());
        return kFailed;
    }
}

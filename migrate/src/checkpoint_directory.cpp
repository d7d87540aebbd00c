/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoint_directory.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "disk_writer.h"
#include "error.h"

namespace zc::migrate {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *kFormat = "zcm 2";

std::string rank_name(int rank)
{
    return "rank-" + std::to_string(rank) + ".h5";
}

/**
 * What there is of a checkpoint that is being written. The directory is opened anew for each look,
 * and so is each file whose length is asked for: then a network file system asks its server, while
 * questions about single names may be answered from a cache for a minute.
 */
struct progress {
    std::vector<bool> has_ended; /* by rank */
    int ended = 0;
    int failed_rank = -1, failure = 0; /* of the first rank that could not write */
    int begun = 0;

    static progress look(const std::string &part, int ranks)
    {
        progress found;
        found.has_ended.resize(static_cast<std::size_t>(ranks));
        std::error_code ignored;
        for (const auto &entry : fs::directory_iterator(part, ignored)) {
            const std::string name = entry.path().filename();
            int rank = -1, code = 0, length = 0;
            if (std::sscanf(name.c_str(), "rank-%d.failed-%d%n", &rank, &code, &length) != 2 ||
                static_cast<std::size_t>(length) != name.size()) {
                code = 0;
                length = 0;
                if (std::sscanf(name.c_str(), "rank-%d.h5%n", &rank, &length) != 1 || length == 0)
                    continue;
                found.begun++;
                if (static_cast<std::size_t>(length) != name.size())
                    continue; /* its .part */
            }
            if (rank < 0 || rank >= ranks || found.has_ended[static_cast<std::size_t>(rank)])
                continue;
            found.has_ended[static_cast<std::size_t>(rank)] = true;
            found.ended++;
            if (code && (found.failed_rank < 0 || rank < found.failed_rank)) {
                found.failed_rank = rank;
                found.failure = code;
            }
        }
        return found;
    }

    /** Bytes that ranks have written which are not done. */
    std::uint64_t bytes(const std::string &part) const
    {
        std::uint64_t sum = 0;
        for (std::size_t rank = 0; rank < has_ended.size(); rank++) {
            if (has_ended[rank])
                continue;
            const std::string file = part + "/" + rank_name(static_cast<int>(rank)) + ".part";
            const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
            struct stat found;
            if (fd >= 0 && fstat(fd, &found) == 0)
                sum += static_cast<std::uint64_t>(found.st_size);
            if (fd >= 0)
                close(fd);
        }
        return sum;
    }

    bool operator==(const progress &) const = default;
};

/** The checkpoint in @directory; throws error(EBADMSG) if it is none. */
checkpoint_directory::complete read_manifest(const std::string &directory)
{
    checkpoint_directory::complete found{directory, 0, 0, 0, {}};
    try {
        std::ifstream file(directory + "/manifest.json");
        const json manifest = json::parse(file);
        if (manifest.at("format") != kFormat)
            throw error(EBADMSG, "checkpoint of another version of libzcm: " + directory +
                                     " (format " + manifest.at("format").dump() + ", not \"" +
                                     kFormat + "\")");
        found.ranks = manifest.at("ranks");
        found.safe_point = manifest.at("safe_point");
        found.generation = manifest.value("generation", std::int64_t{0});
        found.whose = {std::stoull(manifest.at("job").get<std::string>(), nullptr, 16),
                       std::stoull(manifest.at("line").get<std::string>(), nullptr, 16),
                       manifest.at("name"), manifest.value("program", "")};
    } catch (const error &) {
        throw;
    } catch (const std::exception &) {
        throw error(EBADMSG, "damaged checkpoint: " + directory + "/manifest.json");
    }
    return found;
}

/** All that can be read in @directory. */
std::vector<checkpoint_directory::complete> all_in(const std::string &directory)
{
    std::vector<checkpoint_directory::complete> found;
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(directory, ignored)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with("at-") || name.find(".part-") != std::string::npos)
            continue;
        try {
            found.push_back(read_manifest(entry.path()));
        } catch (const error &) {
            /* Nobody resumes from it unless told to, and then it is said what is wrong. */
        }
    }
    std::sort(found.begin(), found.end(),
              [](const auto &a, const auto &b) { return a.directory < b.directory; });
    return found;
}

} // namespace

std::string digits_of(std::uint64_t job)
{
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(job));
    return text;
}

checkpoint_directory::checkpoint_directory(std::string directory, std::int64_t safe_point,
                                           std::string nonce, lineage whose, int keep)
    : directory_(std::move(directory)), whose_(std::move(whose)),
      name_("at-" + std::to_string(safe_point) + "-" + digits_of(whose_.job)),
      nonce_(std::move(nonce)), safe_point_(safe_point), keep_(keep)
{
}

std::string checkpoint_directory::part() const
{
    return directory_ + "/" + name_ + ".part-" + nonce_;
}

void checkpoint_directory::prepare() const
{
    std::error_code problem;
    fs::create_directories(part(), problem);
    if (problem)
        throw_errno(problem.value(), part());
}

void checkpoint_directory::write_rank(int rank, std::span<const std::byte> image,
                                      const std::function<void()> &block_written) const
{
    const std::string file = file_of(rank);
    try {
        write_durably(file, image, block_written);
    } catch (const error &problem) {
        const std::string note =
            part() + "/rank-" + std::to_string(rank) + ".failed-" + std::to_string(problem.code());
        const int fd = open(note.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
        throw;
    }
}

std::string checkpoint_directory::file_of(int rank) const
{
    prepare();
    return part() + "/" + rank_name(rank);
}

void checkpoint_directory::discard() const
{
    std::error_code ignored;
    fs::remove_all(part(), ignored);
}

/** Until every rank has written, or one has failed and the others have ended. Throws error. */
void checkpoint_directory::await(int ranks, double silence_s) const
{
    using clock = std::chrono::steady_clock;
    using seconds = std::chrono::duration<double>;
    const auto begin = clock::now();
    auto heard = begin, weighed = begin;
    progress last;
    std::uint64_t bytes = 0;
    for (;;) {
        const progress now = progress::look(part(), ranks);
        if (now.ended == ranks) {
            if (now.failed_rank >= 0)
                throw_errno(now.failure, "rank " + std::to_string(now.failed_rank) +
                                             " could not write its part of " + directory_ + "/" +
                                             name_);
            return;
        }
        const auto moment = clock::now();
        if (now != last) {
            heard = moment;
            last = now;
        } else if (seconds(moment - weighed).count() > silence_s / 8) {
            weighed = moment;
            const std::uint64_t more = now.bytes(part());
            if (more != bytes)
                heard = moment;
            bytes = more;
        }
        if (seconds(moment - heard).count() > silence_s) {
            const auto late = std::find(now.has_ended.begin(), now.has_ended.end(), false);
            char text[160];
            std::snprintf(text, sizeof text, "rank %d has not written its part of ",
                          static_cast<int>(late - now.has_ended.begin()));
            std::string what = text + directory_ + "/" + name_;
            std::snprintf(text, sizeof text, ", and nobody has written anything for %g s",
                          silence_s);
            throw error(ETIMEDOUT, what + text);
        }
        /* A look costs a file system's server something: the longer it takes, the fewer. */
        const double rest = std::clamp(seconds(moment - begin).count() / 16, 5e-3,
                                       std::clamp(silence_s / 16, 5e-3, 0.5));
        std::this_thread::sleep_for(seconds(rest));
    }
}

void checkpoint_directory::commit(int ranks, double silence_s, company others) const
{
    try {
        prepare(); /* if it cannot be, nobody needs to be waited for */
        await(ranks, silence_s);
        write_manifest(ranks);
        make_latest();
        remove_others(others);
    } catch (const fs::filesystem_error &problem) {
        throw error(problem.code().value(), problem.what());
    } catch (const error &) {
        discard();
        throw;
    }
}

void checkpoint_directory::write_manifest(int ranks) const
{
    std::int64_t newest = 0;
    for (const complete &one : all_in(directory_))
        if (one.whose.line == whose_.line)
            newest = std::max(newest, one.generation);
    const std::string manifest = json{{"format", kFormat},
                                      {"job", digits_of(whose_.job)},
                                      {"line", digits_of(whose_.line)},
                                      {"name", whose_.name},
                                      {"program", whose_.program},
                                      {"ranks", ranks},
                                      {"generation", newest + 1},
                                      {"safe_point", safe_point_}}
                                     .dump(1) +
                                 "\n";
    write_durably(part() + "/manifest.json", std::as_bytes(std::span(manifest)));
}

/** Nothing that is complete is touched: at each moment the link leads to something complete. */
void checkpoint_directory::make_latest() const
{
    std::string name = name_;
    for (int again = 2; fs::exists(directory_ + "/" + name); again++)
        name = name_ + "-" + std::to_string(again);
    const std::string link = directory_ + "/latest";
    const std::string fresh = link + ".part-" + digits_of(whose_.job);
    fs::rename(part(), directory_ + "/" + name);
    fs::remove(fresh);
    fs::create_symlink(name, fresh);
    fs::rename(fresh, link);
    sync_directory(directory_);
}

/**
 * The oldest of our line; and what a crash has left half-written, if nobody else can be at it.
 */
void checkpoint_directory::remove_others(company others) const
{
    std::error_code ignored;
    const std::string ours = "-" + digits_of(whose_.job) + ".part-";
    for (const auto &entry : fs::directory_iterator(directory_, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("at-") && name.find(".part-") != std::string::npos &&
            (others == company::alone || name.find(ours) != std::string::npos))
            fs::remove_all(entry.path(), ignored);
    }
    std::vector<complete> generations;
    for (const complete &one : all_in(directory_))
        if (one.whose.line == whose_.line)
            generations.push_back(one);
    std::ranges::sort(generations, std::greater<>{}, &complete::generation);
    for (std::size_t i = static_cast<std::size_t>(keep_); i < generations.size(); i++) {
        /* From now on it is of no value: half of it must not be taken for the whole. */
        const std::string last = generations[i].directory + ".part-" + nonce_;
        fs::rename(generations[i].directory, last, ignored);
        fs::remove_all(last, ignored);
    }
}

namespace {

/** What else there is to resume from, for those who cannot resume from @broken. */
std::string ones_before(const checkpoint_directory::complete &broken)
{
    std::string text;
    for (const auto &one : all_in(fs::path(broken.directory).parent_path()))
        if (one.whose.line == broken.whose.line && one.generation < broken.generation)
            text += "\n  before it: " + one.directory + ", safe point " +
                    std::to_string(one.safe_point);
    return text;
}

} // namespace

std::string checkpoint_directory::complete::rank_file(int rank) const
{
    return directory + "/" + rank_name(rank);
}

checkpoint_directory::complete checkpoint_directory::latest(const std::string &place)
{
    std::error_code problem;
    complete found{};
    if (fs::exists(place + "/manifest.json", problem)) {
        /* What a link points to may be another one by the time that others look. */
        fs::path one = place.substr(0, place.find_last_not_of('/') + 1);
        if (const fs::path target = fs::read_symlink(one, problem); !problem)
            one = one.parent_path() / target;
        found = read_manifest(one);
    } else {
        const fs::path target = fs::read_symlink(place + "/latest", problem);
        if (problem)
            throw error(ENOENT, "no complete checkpoint in " + place);
        found = read_manifest(place + "/" + target.string());
        std::string choice;
        bool others = false;
        for (const complete &one : all_in(place)) {
            others = others || one.whose.line != found.whose.line;
            choice += "\n  " + one.directory + " of job " + one.whose.name + ", " +
                      std::to_string(one.ranks) + " ranks, safe point " +
                      std::to_string(one.safe_point);
        }
        if (others)
            throw error(EEXIST,
                        place + " has checkpoints of different jobs; name the one to resume from:" +
                            choice);
    }
    for (int rank = 0; rank < found.ranks; rank++)
        if (!fs::exists(found.rank_file(rank), problem))
            throw error(EBADMSG,
                        "damaged checkpoint: no " + found.rank_file(rank) + ones_before(found));
    return found;
}

} // namespace zc::migrate

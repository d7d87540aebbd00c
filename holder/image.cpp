/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "crc32c.h"
#include "error.h"
#include "rank_memory.h"

namespace zc::holder {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::uint64_t kPart = 256 << 10; /* of memory, that is read at once */
/* No process has memory behind it, and page_places knows of none from 2^63 on. */
constexpr std::uint64_t kLargestAddress = (std::uint64_t{1} << 63) - (1 << 30);
constexpr const char *kPages = "pages-"; /* CRIU's files of memory, and of nothing else */
/* A sender's owner has other things to do, to send what is pushed among them. */
constexpr std::chrono::milliseconds kTurn{2};

std::string line_of(const nlohmann::json &what)
{
    return what.dump() + "\n";
}

void write_all(int fd, std::string_view bytes, const std::string &where)
{
    while (!bytes.empty()) {
        const ssize_t written = write(fd, bytes.data(), bytes.size());
        if (written < 0)
            throw_errno(errno, where);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::uint64_t bytes_of(const std::vector<page_range> &all)
{
    std::uint64_t bytes = 0;
    for (const page_range &each : all)
        bytes += each.end - each.begin;
    return bytes;
}

/** Each of kPart bytes at most. */
std::vector<std::vector<page_range>> in_parts(const std::vector<page_range> &all)
{
    std::vector<std::vector<page_range>> parts;
    std::uint64_t room = 0;
    for (page_range each : all) {
        while (each.begin < each.end) {
            if (room == 0) {
                parts.emplace_back();
                room = kPart;
            }
            const std::uint64_t bytes = std::min(each.end - each.begin, room);
            parts.back().push_back({each.begin, each.begin + bytes});
            each.begin += bytes;
            room -= bytes;
        }
    }
    return parts;
}

} // namespace

std::uint32_t push_memory(outgoing &to, const page_runs &runs, std::string &&content,
                          std::uint32_t crc)
{
    const std::string line = runs.line("memory");
    crc = zc_crc32c(crc, line.data(), line.size());
    crc = zc_crc32c(crc, content.data(), content.size());
    to.push(line);
    to.push_all_of(std::move(content));
    return crc;
}

image_sender::image_sender(const nlohmann::json &manifest, const std::string &directory,
                           sent_ahead ahead, std::optional<frozen_memory> memory)
    : ahead_(std::move(ahead)), memory_(std::move(memory))
{
    const std::vector<std::uint8_t> coded = nlohmann::json::to_cbor(manifest);
    head_ = line_of({{"manifest", coded.size()}});
    head_.append(coded.begin(), coded.end());
    for (const auto &entry : std::filesystem::directory_iterator(directory)) {
        if (entry.is_regular_file() && entry.path().extension() == ".img")
            files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
}

void image_sender::add(outgoing &to, std::string_view bytes)
{
    ahead_.crc = zc_crc32c(ahead_.crc, bytes.data(), bytes.size());
    bytes_ += bytes.size();
    to.push(bytes);
}

void image_sender::add_file_part(outgoing &to)
{
    const read_part part = reader_->next();
    const std::string_view pages = part.pages;
    page_runs runs;
    std::string fresh;
    for (std::size_t at = 0; at < pages.size(); at += known_pages::kPage) {
        const std::string_view page = pages.substr(at, known_pages::kPage);
        const std::size_t number = at / known_pages::kPage;
        const auto place = number < part.places.size() ? part.places[number] : std::nullopt;
        runs.add(file_at_ + at, page.size(), place.value_or(page_runs::kFollows));
        bytes_there_ += place ? page.size() : 0;
        if (!place)
            fresh += page;
    }
    file_at_ += pages.size();
    add(to, runs.line("runs"));
    ahead_.crc = zc_crc32c(ahead_.crc, pages.data(), pages.size()); /* what they stand for */
    bytes_ += fresh.size();
    to.push_all_of(std::move(fresh));
}

void image_sender::open_next(outgoing &to)
{
    const std::filesystem::path path = files_[next_++];
    file_ = descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    file_at_ = 0;
    struct stat found;
    if (file_.fd < 0 || fstat(file_.fd, &found) != 0)
        throw_errno(errno, path);
    nlohmann::json head = {{"name", path.filename()}, {"bytes", found.st_size}};
    if (ahead_.there && path.filename().string().starts_with(kPages)) {
        head["parts"] = true;
        const auto bytes = static_cast<std::size_t>(found.st_size);
        reader_ = std::make_unique<page_reader>(
            (bytes + outgoing::kLongest - 1) / outgoing::kLongest,
            [fd = file_.fd, path, bytes](std::size_t number, std::string &pages) {
                const std::size_t at = number * outgoing::kLongest;
                pages.resize(std::min(bytes - at, outgoing::kLongest));
                const ssize_t got = pread(fd, pages.data(), pages.size(), static_cast<off_t>(at));
                if (got != static_cast<ssize_t>(pages.size()))
                    throw_errno(got < 0 ? errno : EIO, path);
            },
            ahead_.there);
    }
    add(to, line_of(head));
}

/** What is unchanged needs no word. */
void image_sender::open_memory()
{
    std::vector<page_range> changed;
    for (const page_range &each : memory_->pages) {
        for (const page_range &part :
             ahead_.unchanged ? ahead_.unchanged->changed(each) : std::vector{each})
            append(changed, part);
    }
    bytes_left_out_ = bytes_of(memory_->pages);
    bytes_unread_ = bytes_left_out_ - bytes_of(changed);
    bytes_there_ += bytes_unread_;
    parts_ = in_parts(changed);
    reader_ = std::make_unique<page_reader>(
        parts_.size(),
        [this](std::size_t number, std::string &pages) {
            read_pages(memory_->pid, parts_[number], pages);
        },
        ahead_.there);
}

void image_sender::add_memory(outgoing &to)
{
    const read_part part = reader_->next();
    const std::string_view pages = part.pages;
    page_runs runs;
    std::string fresh;
    std::size_t number = 0;
    for (const page_range &each : parts_[next_part_++]) {
        for (std::uint64_t address = each.begin; address < each.end;
             address += known_pages::kPage, number++) {
            const auto place = part.places[number];
            if (ahead_.told.set(address, place.value_or(ahead_.stored + fresh.size())))
                runs.add(address, known_pages::kPage, place.value_or(page_runs::kFollows));
            bytes_there_ += place ? known_pages::kPage : 0;
            if (!place)
                fresh += pages.substr(number * known_pages::kPage, known_pages::kPage);
        }
    }
    ahead_.stored += fresh.size();
    bytes_ += fresh.size();
    if (!runs.is_empty())
        ahead_.crc = push_memory(to, runs, std::move(fresh), ahead_.crc);
}

void image_sender::add_end(outgoing &to)
{
    nlohmann::json end = {{"crc", ahead_.crc}};
    if (memory_) {
        ahead_.told.keep(memory_->pages);
        if (ahead_.told.bytes() != bytes_left_out_)
            throw error(EFAULT, "not all memory was sent");
        end["memory"] = ahead_.told.sum();
    }
    to.push(line_of(end));
    done_ = true;
}

bool image_sender::push(outgoing &to)
{
    const auto until = std::chrono::steady_clock::now() + kTurn;
    std::string buffer;
    while (can_push(to) && std::chrono::steady_clock::now() < until) {
        if (!head_.empty()) {
            add(to, head_);
            head_.clear();
        } else if (file_.fd >= 0 && reader_) {
            if (!reader_->is_at_end())
                add_file_part(to);
            if (reader_->is_at_end()) {
                reader_.reset();
                file_ = descriptor{};
            }
        } else if (file_.fd >= 0) {
            buffer.resize(outgoing::kLongest);
            const ssize_t got = read(file_.fd, buffer.data(), buffer.size());
            if (got < 0)
                throw_errno(errno, files_[next_ - 1]);
            if (got == 0)
                file_ = descriptor{};
            add(to, {buffer.data(), static_cast<std::size_t>(got)});
        } else if (next_ < files_.size()) {
            open_next(to);
        } else if (memory_ && !reader_) {
            open_memory();
        } else if (memory_ && !reader_->is_at_end()) {
            add_memory(to);
        } else {
            add_end(to);
        }
    }
    return done_;
}

bool image_receiver::take_content(std::string_view bytes, std::size_t &at)
{
    const std::size_t part = std::min<std::uint64_t>(left_, bytes.size() - at);
    const std::string_view content(bytes.data() + at, part);
    switch (into_) {
    case into::manifest:
        manifest_bytes_.append(content);
        break;
    case into::runs:
        run_bytes_.append(content);
        break;
    case into::memory:
        write_all(store_.fd, content, directory_);
        stored_ += part;
        kept_ += part;
        break;
    case into::file:
        write_all(file_.fd, content, directory_);
        kept_ += part;
        break;
    }
    crc_ = zc_crc32c(crc_, content.data(), part);
    at += part;
    left_ -= part;
    if (left_ == 0 && into_ == into::manifest)
        manifest_ = nlohmann::json::from_cbor(manifest_bytes_, true, false);
    if (left_ == 0 && into_ == into::runs) {
        runs_ = page_runs::of(run_bytes_);
        run_bytes_.clear();
        next_run_ = 0;
    }
    return part > 0;
}

/** It has no name: nothing is left of it when this process ends. */
void image_receiver::open_store()
{
    if (store_.fd >= 0)
        return;
    store_ = descriptor{open(directory_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)};
    if (store_.fd < 0)
        throw_errno(errno, directory_);
}

void image_receiver::open_file(const nlohmann::json &said)
{
    const std::string name = said["name"];
    if (name.empty() || name.find('/') != std::string::npos || name.front() == '.')
        throw error(EBADMSG, "the image names a file " + name);
    file_ = descriptor{open((directory_ + "/" + name).c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (file_.fd < 0)
        throw_errno(errno, name);
    (said.contains("parts") ? parts_ : left_) = said["bytes"];
    file_at_ = 0;
    into_ = into::file;
}

void image_receiver::open_runs(const nlohmann::json &count)
{
    if (!count.is_number_unsigned() || count < 1 || count > page_runs::kMost)
        throw error(EBADMSG, "the image has a line that is none of its kinds");
    left_ = count.get<std::uint64_t>() * page_runs::kBytes;
    into_ = into::runs;
}

void image_receiver::take_run()
{
    const stored_pages run = runs_[next_run_++];
    if (run.bytes == 0)
        throw error(EBADMSG, "the image has a run without a length");
    if (runs_are_memory_)
        return take_pages(run);
    if (run.bytes > parts_ || run.address != file_at_)
        throw error(EBADMSG, "the image has a run that is no part of its file");
    parts_ -= run.bytes;
    file_at_ += run.bytes;
    if (run.from != page_runs::kFollows)
        return take_stored(run.from, run.bytes);
    into_ = into::file;
    left_ = run.bytes;
}

void image_receiver::check_stored(std::uint64_t from, std::uint64_t bytes) const
{
    if (from > stored_ || bytes > stored_ - from)
        throw error(EBADMSG, "the image names pages that have not come");
}

/** They stay in the store until the rank has them. */
void image_receiver::take_pages(const stored_pages &run)
{
    const bool follows = run.from == page_runs::kFollows;
    const std::uint64_t from = follows ? stored_ : run.from;
    if ((run.address | run.bytes | from) % page_places::kPage != 0 ||
        run.bytes > page_runs::kMost * page_places::kPage || run.address > kLargestAddress)
        throw error(EBADMSG, "the image has memory that is no pages");
    if (follows) {
        open_store();
        into_ = into::memory;
        left_ = run.bytes;
    } else {
        check_stored(from, run.bytes);
    }
    memory_.set({run.address, run.bytes, from});
}

void image_receiver::take_end(const nlohmann::json &said)
{
    if (said["crc"] != crc_ || parts_ > 0)
        throw error(EBADMSG, "the image has arrived damaged");
    if (said.contains("memory"))
        memory_sum_ = said["memory"].get<std::uint32_t>();
    done_ = true;
}

page_places image_receiver::take_memory(const std::vector<page_range> &left_out)
{
    memory_.keep(left_out);
    if (memory_.bytes() != bytes_of(left_out) ||
        (!left_out.empty() && memory_sum_ != memory_.sum()))
        throw error(EBADMSG, "the memory that came is not what CRIU has left out");
    return std::exchange(memory_, {});
}

void image_receiver::take_stored(std::uint64_t from, std::uint64_t bytes)
{
    check_stored(from, bytes);
    std::string part(std::min<std::uint64_t>(bytes, outgoing::kLongest), '\0');
    for (std::uint64_t done = 0; done < bytes;) {
        const std::size_t wanted = std::min<std::uint64_t>(bytes - done, part.size());
        const ssize_t got = pread(store_.fd, part.data(), wanted, static_cast<off_t>(from + done));
        if (got <= 0)
            throw_errno(got < 0 ? errno : EIO, directory_);
        const std::string_view content(part.data(), static_cast<std::size_t>(got));
        write_all(file_.fd, content, directory_);
        crc_ = zc_crc32c(crc_, content.data(), content.size());
        done += content.size();
        kept_ += content.size();
        taken_from_store_ += content.size();
    }
}

bool image_receiver::take_line(std::string_view bytes, std::size_t &at)
{
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string::npos) {
        if (bytes.size() - at > kLongestLine)
            throw error(EBADMSG, "the image has a line that is too long");
        return false;
    }
    const auto said = nlohmann::json::parse(bytes.substr(at, end - at), nullptr, false);
    const std::size_t begin = at;
    at = end + 1;
    if (said.is_object() && said.contains("crc")) {
        take_end(said);
        return false;
    }
    crc_ = zc_crc32c(crc_, bytes.data() + begin, at - begin);
    const bool runs = said.is_object() && said.contains("runs");
    if (runs != (parts_ > 0))
        throw error(EBADMSG, "the image has a line that is no part of a file");
    runs_are_memory_ = said.is_object() && said.contains("memory");
    if (runs) {
        open_runs(said["runs"]);
    } else if (runs_are_memory_) {
        open_runs(said["memory"]);
    } else if (said.is_object() && said.contains("manifest")) {
        into_ = into::manifest;
        left_ = said["manifest"];
    } else if (said.is_object() && said.contains("name") && said.contains("bytes")) {
        open_file(said);
    } else {
        throw error(EBADMSG, "the image has a line that is none of its kinds");
    }
    return true;
}

void image_receiver::forget_store()
{
    store_ = descriptor{};
}

std::optional<nlohmann::json> image_receiver::take(incoming &from)
{
    const std::string_view bytes = from.bytes();
    std::size_t at = 0;
    taken_from_store_ = 0;
    while (
        !done_ && taken_from_store_ < kMostOfStore &&
        (left_ > 0 ? take_content(bytes, at) : next_run_ < runs_.size() || take_line(bytes, at))) {
        if (left_ == 0 && next_run_ < runs_.size())
            take_run();
    }
    from.use(at);
    if (!done_)
        return {};
    file_ = descriptor{};
    if (!manifest_.is_object())
        throw error(EBADMSG, "the image has no manifest");
    return manifest_;
}

} // namespace zc::holder

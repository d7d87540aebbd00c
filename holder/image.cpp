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

namespace zc::holder {
namespace {

constexpr std::size_t kLongestLine = 4096;
/* Of memory, that one line tells of: of most of it only the place is told, and each line is handed
 * from thread to thread. A run for each of its pages fits in a line. */
constexpr std::uint64_t kPart = 512 << 10;
constexpr const char *kPages = "pages-"; /* CRIU's files of memory, and of nothing else */
constexpr std::int64_t kFollows = -1;    /* instead of a place in the store */
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

/** Each of kPart bytes at most. */
std::vector<page_range> in_parts(const std::vector<page_range> &all)
{
    std::vector<page_range> parts;
    for (const page_range &each : all) {
        for (std::uint64_t at = each.begin; at < each.end; at += kPart)
            parts.push_back({at, std::min(each.end, at + kPart)});
    }
    return parts;
}

/** But for what is unchanged. */
void read_frozen(const frozen_memory &from, const page_range &where, read_part &part)
{
    std::vector<page_range> ranges = {where};
    if (from.unchanged) {
        part.places = from.unchanged->find(where);
        ranges.clear();
        for (std::size_t i = 0; i < part.places.size(); i++) {
            const std::uint64_t page = where.begin + i * known_pages::kPage;
            part.unread.push_back(part.places[i].has_value());
            if (!part.places[i])
                append(ranges, {page, page + known_pages::kPage});
        }
    }
    if (!ranges.empty())
        read_pages(from.pid, ranges, part.pages);
}

} // namespace

std::string store_line(std::size_t bytes)
{
    return line_of({{"store", bytes}});
}

image_sender::image_sender(const nlohmann::json &manifest, const std::string &directory,
                           const known_pages *there, std::optional<frozen_memory> memory)
    : there_(there), memory_(std::move(memory))
{
    if (memory_)
        memory_->pages = in_parts(memory_->pages);
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
    crc_ = zc_crc32c(crc_, bytes.data(), bytes.size());
    bytes_ += bytes.size();
    to.push(bytes);
}

void image_sender::add_pages(outgoing &to, const read_part &part,
                             std::optional<std::uint64_t> address)
{
    const std::string_view pages = part.pages;
    nlohmann::json::array_t runs;
    std::string fresh;
    std::size_t run = 0;               /* bytes of the one that goes on */
    std::optional<std::uint64_t> from; /* its place in the store */
    const auto end_run = [&] {
        if (run == 0)
            return;
        runs.emplace_back(run);
        runs.emplace_back(from ? static_cast<std::int64_t>(*from) : kFollows);
        if (from)
            bytes_there_ += run;
        run = 0;
    };
    for (std::size_t at = 0, number = 0; at < pages.size() || number < part.unread.size();
         number++) {
        const bool unread = number < part.unread.size() && part.unread[number];
        const std::string_view page =
            unread ? std::string_view() : pages.substr(at, known_pages::kPage);
        const std::size_t bytes = unread ? known_pages::kPage : page.size();
        const auto place = number < part.places.size() ? part.places[number] : std::nullopt;
        if (place ? !from || *place != *from + run : from.has_value())
            end_run();
        if (run == 0)
            from = place;
        if (!place)
            fresh += page;
        bytes_unread_ += unread ? bytes : 0;
        run += bytes;
        at += page.size();
    }
    end_run();
    nlohmann::json head = {{"runs", std::move(runs)}};
    if (address)
        head["pages"] = *address;
    add(to, line_of(head));
    const std::string_view summed = address ? std::string_view(fresh) : pages;
    crc_ = zc_crc32c(crc_, summed.data(), summed.size());
    bytes_ += fresh.size();
    to.push_all_of(std::move(fresh));
}

void image_sender::open_next(outgoing &to)
{
    const std::filesystem::path path = files_[next_++];
    file_ = descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat found;
    if (file_.fd < 0 || fstat(file_.fd, &found) != 0)
        throw_errno(errno, path);
    nlohmann::json head = {{"name", path.filename()}, {"bytes", found.st_size}};
    if (there_ && path.filename().string().starts_with(kPages)) {
        head["parts"] = true;
        const auto bytes = static_cast<std::size_t>(found.st_size);
        reader_ = std::make_unique<page_reader>(
            (bytes + outgoing::kLongest - 1) / outgoing::kLongest,
            [fd = file_.fd, path, bytes](std::size_t number, read_part &part) {
                std::string &pages = part.pages;
                const std::size_t at = number * outgoing::kLongest;
                pages.resize(std::min(bytes - at, outgoing::kLongest));
                const ssize_t got = pread(fd, pages.data(), pages.size(), static_cast<off_t>(at));
                if (got != static_cast<ssize_t>(pages.size()))
                    throw_errno(got < 0 ? errno : EIO, path);
            },
            there_);
    }
    add(to, line_of(head));
}

void image_sender::open_memory()
{
    reader_ = std::make_unique<page_reader>(
        memory_->pages.size(),
        [&from = *memory_](std::size_t number, read_part &part) {
            read_frozen(from, from.pages[number], part);
        },
        there_);
}

void image_sender::add_memory(outgoing &to)
{
    if (!reader_)
        open_memory();
    add_pages(to, reader_->next(), memory_->pages[next_range_].begin);
    const page_range &range = memory_->pages[next_range_++];
    bytes_left_out_ += range.end - range.begin;
}

void image_sender::add_end(outgoing &to)
{
    nlohmann::json end = {{"crc", crc_}};
    if (memory_)
        end["store_crc"] = memory_->store_sum;
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
                add_pages(to, reader_->next());
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
        } else if (memory_ && next_range_ < memory_->pages.size()) {
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
    if (into_ == into::manifest)
        manifest_bytes_.append(content);
    else
        write_all(into_ == into::file ? file_.fd : store_.fd, content, directory_);
    kept_ += into_ == into::manifest ? 0 : part;
    if (into_ == into::store || into_ == into::memory)
        stored_ += part;
    std::uint32_t &sum = into_ == into::store ? store_crc_ : crc_;
    sum = zc_crc32c(sum, content.data(), part);
    at += part;
    left_ -= part;
    if (left_ == 0 && into_ == into::manifest)
        manifest_ = nlohmann::json::from_cbor(manifest_bytes_, true, false);
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
    into_ = into::file;
}

void image_receiver::take_runs(const nlohmann::json &said)
{
    const nlohmann::json &runs = said["runs"];
    if (!runs.is_array() || runs.empty() || runs.size() % 2 != 0 ||
        !std::all_of(runs.begin(), runs.end(),
                     [](const auto &each) { return each.is_number_integer(); }))
        throw error(EBADMSG, "the image has a line that is none of its kinds");
    runs_ = runs.get<std::vector<std::int64_t>>();
    next_run_ = 0;
    address_.reset();
    if (said.contains("pages"))
        address_ = said["pages"].get<std::uint64_t>();
}

void image_receiver::take_run()
{
    const std::int64_t bytes = runs_[next_run_], from = runs_[next_run_ + 1];
    next_run_ += 2;
    if (bytes <= 0 || from < kFollows)
        throw error(EBADMSG, "the image has a run without a length, or from nowhere");
    if (address_)
        return take_pages(static_cast<std::uint64_t>(bytes), from);
    if (static_cast<std::uint64_t>(bytes) > parts_)
        throw error(EBADMSG, "the image has a run that is longer than its file");
    parts_ -= static_cast<std::uint64_t>(bytes);
    into_ = into::file;
    if (from == kFollows)
        left_ = static_cast<std::uint64_t>(bytes);
    else
        take_stored(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(bytes));
}

void image_receiver::check_stored(std::uint64_t from, std::uint64_t bytes) const
{
    if (from > stored_ || bytes > stored_ - from)
        throw error(EBADMSG, "the image names pages that have not come");
}

/** They stay in the store until the rank has them. */
void image_receiver::take_pages(std::uint64_t bytes, std::int64_t place)
{
    const std::uint64_t address = *address_;
    if ((address | bytes) % known_pages::kPage != 0 || address + bytes < address ||
        (!memory_.empty() && address < memory_.back().address + memory_.back().bytes))
        throw error(EBADMSG, "the image has memory that is no pages, or in no order");
    open_store();
    const bool stored = place != kFollows;
    const std::uint64_t from = stored ? static_cast<std::uint64_t>(place) : stored_;
    if (from % known_pages::kPage != 0)
        throw error(EBADMSG, "the image names what is no page of the store");
    if (stored) {
        check_stored(from, bytes);
    } else {
        into_ = into::memory;
        left_ = bytes;
    }
    memory_.push_back({address, bytes, from});
    *address_ += bytes;
}

void image_receiver::take_end(const nlohmann::json &said)
{
    const bool memory_came = memory_.empty() || said.value("store_crc", ~store_crc_) == store_crc_;
    if (said["crc"] != crc_ || parts_ > 0 || !memory_came)
        throw error(EBADMSG, "the image has arrived damaged");
    done_ = true;
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
    if (said.is_object() && said.contains("store")) {
        open_store();
        into_ = into::store;
        left_ = said["store"];
        return true;
    }
    crc_ = zc_crc32c(crc_, bytes.data() + begin, at - begin);
    const bool runs = said.is_object() && said.contains("runs");
    if (parts_ > 0 ? !runs || said.contains("pages") : runs && !said.contains("pages"))
        throw error(EBADMSG, "the image has a line that is no part of a file");
    if (runs) {
        take_runs(said);
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

void image_receiver::forget_memory()
{
    store_ = descriptor{};
    memory_.clear();
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

/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "error.h"
#include "own_hdf5.h"

namespace zc::migrate::hdf5 {

/* HDF5 prints its error stack unless told otherwise; the program's setting comes back. */
class quiet {
  public:
    quiet()
    {
        errno = 0; /* see fail() */
        H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

  private:
    H5E_auto2_t print_ = nullptr;
    void *data_ = nullptr;
};

[[noreturn]] inline void fail(const std::string &what)
{
    /* What the file system has told HDF5, which does not hand it on. */
    for (int code : {ENOSPC, EDQUOT, EIO, EFBIG})
        if (errno == code)
            throw_errno(code, "HDF5 cannot " + what);
    throw error(EBADMSG, "HDF5 cannot " + what);
}

/** Done if a block is left by an exception. */
template <typename Action>
class undo {
  public:
    explicit undo(Action action) : action_(action) {}
    ~undo()
    {
        if (std::uncaught_exceptions() > before_)
            action_();
    }
    undo(const undo &) = delete;
    undo &operator=(const undo &) = delete;

  private:
    Action action_;
    int before_ = std::uncaught_exceptions();
};

/** One HDF5 identifier. */
class handle {
  public:
    handle(hid_t id, herr_t (*close)(hid_t), const std::string &what) : id_(id), close_(close)
    {
        if (id < 0)
            fail(what);
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    handle(handle &&other) noexcept
        : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_)
    {
    }
    ~handle()
    {
        if (id_ >= 0)
            close_(id_);
    }
    operator hid_t() const noexcept { return id_; }

  private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

inline void ensure(herr_t status, const std::string &what)
{
    if (status < 0)
        fail(what);
}

} // namespace zc::migrate::hdf5

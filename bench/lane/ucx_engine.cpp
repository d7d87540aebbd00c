/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <poll.h>
#include <sys/mman.h>
#include <thread>
#include <ucp/api/ucp.h>

namespace {

constexpr unsigned kMessage = 1;
constexpr int kSpinBeforeSleep = 200; /* looks in vain */
constexpr auto kWhileInside = std::chrono::microseconds(500);

void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        die("%s: %s", what, ucs_status_string(status));
}

class ucx_engine final : public engine {
  public:
    ucx_engine(bool two, std::size_t longest) : nr_workers_(two ? 2 : 1), landing_len_(longest)
    {
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
        ucp_config_t *config = nullptr;
        check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
        check(ucp_init(&params, config, &context_), "ucp_init");
        ucp_config_release(config);
        for (int i = 0; i < nr_workers_; i++) {
            ucp_worker_params_t wp{};
            wp.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
            wp.thread_mode = UCS_THREAD_MODE_SERIALIZED;
            check(ucp_worker_create(context_, &wp, &workers_[i]), "ucp_worker_create");
            check(ucp_worker_get_efd(workers_[i], &polled_[i].fd), "ucp_worker_get_efd");
            polled_[i].events = POLLIN;
        }
        ucp_am_handler_param_t handler{};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                             UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
        handler.id = kMessage;
        handler.cb = on_message;
        handler.arg = this;
        handler.flags = UCP_AM_FLAG_WHOLE_MSG;
        check(ucp_worker_set_am_recv_handler(in(), &handler), "ucp_worker_set_am_recv_handler");
        landing_ = mmap(nullptr, landing_len_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (landing_ == MAP_FAILED)
            die("no memory to land in");
    }

    ~ucx_engine() override
    {
        stop_ = true;
        if (thread_.joinable())
            thread_.join();
    }

    void connect(control &peer, bool) override
    {
        ucp_address_t *address = nullptr;
        std::size_t len = 0;
        check(ucp_worker_get_address(in(), &address, &len), "ucp_worker_get_address");
        const char *bytes = reinterpret_cast<const char *>(address);
        peer.put_blob(std::vector<char>(bytes, bytes + len));
        ucp_worker_release_address(in(), address);
        const std::vector<char> there = peer.get_blob();
        ucp_ep_params_t ep{};
        ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        ep.address = reinterpret_cast<const ucp_address_t *>(there.data());
        check(ucp_ep_create(out(), &ep, &endpoint_), "ucp_ep_create");
        thread_ = std::thread([this] { land(); });
        pthread_setname_np(thread_.native_handle(), "landing");
        peer.meet();
        /* Wires up both directions. */
        char there_and_back[8] = {};
        post(there_and_back, sizeof there_and_back);
        peer.meet();
        send(there_and_back, sizeof there_and_back);
        receive(sizeof there_and_back);
        wait_sent();
        release();
        peer.meet();
    }

    void post(void *buf, std::size_t) override
    {
        entry guard(*this);
        posted_.push_back(buf);
    }

    const void *receive(std::size_t len) override
    {
        entry guard(*this);
        wait([this] { return !arrived_.empty() && arrived_.front()->done; });
        last_ = std::move(arrived_.front());
        arrived_.pop_front();
        if (last_->len != len)
            die("ucx: %zu bytes instead of %zu", last_->len, len);
        return last_->at;
    }

    void send(const void *buf, std::size_t len) override
    {
        entry guard(*this);
        ucp_request_param_t param{};
        param.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
        if (len >= 65536)
            param.flags = UCP_AM_SEND_FLAG_RNDV;
        param.cb.send = on_sent;
        param.user_data = this;
        const ucs_status_ptr_t request =
            ucp_am_send_nbx(endpoint_, kMessage, nullptr, 0, buf, len, &param);
        if (UCS_PTR_IS_ERR(request))
            die("ucp_am_send_nbx: %s", ucs_status_string(UCS_PTR_STATUS(request)));
        if (request)
            nr_unsent_++;
        /* A call of MPI makes progress, too. */
        for (int i = 0; i < nr_workers_; i++)
            ucp_worker_progress(workers_[i]);
    }

    void wait_sent() override
    {
        entry guard(*this);
        wait([this] { return nr_unsent_ == 0; });
    }

    void release() override
    {
        entry guard(*this);
        last_.reset();
    }

  private:
    struct message {
        void *at;
        std::size_t len;
        bool done;
    };

    /* The gate: the landing thread leaves as soon as the application comes. */
    class entry {
      public:
        explicit entry(ucx_engine &e) : engine_(e)
        {
            engine_.inside_ = true;
            engine_.lock_.lock();
        }
        ~entry()
        {
            /* What came while the descriptors were not armed: the thread looks once more. */
            for (int i = 0; i < engine_.nr_workers_; i++)
                ucp_worker_signal(engine_.workers_[i]);
            engine_.lock_.unlock();
            engine_.inside_ = false;
        }

      private:
        ucx_engine &engine_;
    };

    ucp_worker_h out() const { return workers_[0]; }
    ucp_worker_h in() const { return workers_[nr_workers_ - 1]; }

    unsigned progress()
    {
        unsigned n = 0;
        for (int i = 0; i < nr_workers_; i++)
            n += ucp_worker_progress(workers_[i]);
        return n;
    }

    /* True: all asleep until there is something. */
    bool arm()
    {
        for (int i = 0; i < nr_workers_; i++)
            if (ucp_worker_arm(workers_[i]) != UCS_OK)
                return false;
        return true;
    }

    template <typename F>
    void wait(F done)
    {
        for (int idle = 0; !done();) {
            if (progress() > 0)
                idle = 0;
            else if (++idle > kSpinBeforeSleep && arm())
                poll(polled_, static_cast<nfds_t>(nr_workers_), 100);
        }
    }

    void land()
    {
        while (!stop_) {
            poll(polled_, static_cast<nfds_t>(nr_workers_), 100);
            if (inside_) {
                std::this_thread::sleep_for(kWhileInside);
                continue;
            }
            std::unique_lock<std::mutex> held(lock_, std::try_to_lock);
            if (!held.owns_lock())
                continue;
            while (!inside_ && (progress() > 0 || !arm()))
                ;
        }
    }

    static ucs_status_t on_message(void *arg, const void *, size_t, void *data, size_t len,
                                   const ucp_am_recv_param_t *param)
    {
        auto &self = *static_cast<ucx_engine *>(arg);
        void *to = self.landing_;
        if (!self.posted_.empty()) {
            to = self.posted_.front();
            self.posted_.pop_front();
        } else if (len > self.landing_len_) {
            die("ucx: %zu bytes to land", len);
        }
        self.arrived_.push_back(std::make_unique<message>(message{to, len, false}));
        message *m = self.arrived_.back().get();
        if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
            std::memcpy(to, data, len);
            m->done = true;
            return UCS_OK;
        }
        ucp_request_param_t how{};
        how.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        how.cb.recv_am = on_data;
        how.user_data = m;
        const ucs_status_ptr_t request = ucp_am_recv_data_nbx(self.in(), data, to, len, &how);
        if (UCS_PTR_IS_ERR(request))
            die("ucp_am_recv_data_nbx: %s", ucs_status_string(UCS_PTR_STATUS(request)));
        return UCS_INPROGRESS;
    }

    static void on_data(void *request, ucs_status_t status, size_t, void *user)
    {
        check(status, "receiving");
        static_cast<message *>(user)->done = true;
        ucp_request_free(request);
    }

    static void on_sent(void *request, ucs_status_t status, void *user)
    {
        check(status, "sending");
        static_cast<ucx_engine *>(user)->nr_unsent_--;
        ucp_request_free(request);
    }

    const int nr_workers_;
    const std::size_t landing_len_;
    void *landing_ = nullptr;
    ucp_context_h context_ = nullptr;
    ucp_worker_h workers_[2] = {};
    pollfd polled_[2] = {};
    ucp_ep_h endpoint_ = nullptr;
    std::mutex lock_;
    std::atomic<bool> inside_{false}, stop_{false};
    std::thread thread_;
    std::deque<void *> posted_;
    std::deque<std::unique_ptr<message>> arrived_;
    std::unique_ptr<message> last_;
    int nr_unsent_ = 0;
};

} // namespace

std::unique_ptr<engine> make_ucx_engine(bool two, std::size_t longest)
{
    return std::make_unique<ucx_engine>(two, longest);
}

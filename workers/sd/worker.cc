#include "workers/sd/worker.h"

#include "server/apis/error_forms.h"
#include "server/apis/image_routes.h"
#include "server/image/service.h"

namespace rbee::workers {
namespace {

class ServedImages final : public Served {
 public:
  ServedImages(std::unique_ptr<engine::ImageEngine> engine, server::ServiceOptions options)
      : engine_(std::move(engine)), service_(*engine_, std::move(options)) {}

  server::WorkerService& service() override { return service_; }
  server::Router routes(std::function<void()> shutdown) override {
    return server::image_routes(service_, std::move(shutdown));
  }
  // Two pictures of 16 MP as base64, and the text around them.
  size_t max_body_bytes() const override { return size_t{64} << 20; }
  void stop() override { engine_->stop(); }

 private:
  std::unique_ptr<engine::ImageEngine> engine_;
  server::ImageService service_;
};

}  // namespace

int run_sd_worker(const Program& program, const LoadImageEngine& load, int argc,
                  const char* const* argv) {
  const std::variant<SdFlags, int> parsed = parse_sd_flags(argc, argv, program);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const SdFlags& flags = std::get<SdFlags>(parsed);
  return run_worker(program, flags, flags.model, server::image_error_form,
                    [&](server::LoadingState& loading) -> std::unique_ptr<Served> {
                      return std::make_unique<ServedImages>(
                          load(flags, loading),
                          server::ServiceOptions{.worker_id = flags.worker_id,
                                                 .model_id = flags.model_ref,
                                                 .implementation = program.name,
                                                 .version = RBEE_VERSION,
                                                 .jobs = {}});
                    });
}

}  // namespace rbee::workers

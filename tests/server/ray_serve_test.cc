// Two CPU workers behind Ray Serve; one is killed under load (clients/ray_serve.py).

#include <gtest/gtest.h>

#include "tests/checkpoints/model_folder.h"
#include "tests/server/client_script.h"
#include "tests/server/process.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

TEST(RayServe, ReplacesAKilledWorker) {
  const test::ModelFolder model(test::data_folder());
  Process ray(python(), {client_script("ray_serve.py"), LLM_WORKER, model.path().string()},
              {variable("PATH"), variable("HOME"), "no_proxy=*"});
  const int status = ray.wait();
  if (status == kSkipped) GTEST_SKIP() << ray.text();
  EXPECT_EQ(status, 0) << ray.text();
}

}  // namespace
}  // namespace rbee::testing

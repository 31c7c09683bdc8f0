#include "tests/support/data_folder.h"

namespace rbee::test {

std::string data_folder() {
  return RBEE_TEST_DATA;
}

}  // namespace rbee::test

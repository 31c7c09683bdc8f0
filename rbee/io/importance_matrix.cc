#include "rbee/io/importance_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "rbee/core/error.h"
#include "rbee/io/gguf_format.h"
#include "rbee/io/gguf_reader.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/io/output_file.h"

namespace rbee::io {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";
constexpr const char* kDatasets = "imatrix.datasets";
constexpr const char* kChunkCount = "imatrix.chunk_count";
constexpr const char* kChunkSize = "imatrix.chunk_size";

void check_values(const std::string& source, const std::string& name, std::string_view what,
                  std::span<const float> values) {
  const auto bad =
      std::ranges::find_if(values, [](float value) { return !std::isfinite(value) || value < 0; });
  check(bad == values.end(), source, "entry ", name, " has ", what, " ",
        bad == values.end() ? 0.0f : *bad, "; wanted a finite number from 0 on");
}

std::vector<float> floats_of(const TensorEntry& tensor, const std::string& source) {
  check(tensor.dtype == DType::f32, source, "tensor ", tensor.name, " is ", tensor.dtype,
        "; an importance matrix has f32");
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(float));
  return values;
}

void check_sizes(const std::string& source, const std::string& name, const ImportanceEntry& entry) {
  const size_t sums = entry.sums.size(), counts = entry.counts.size();
  check(sums > 0 && counts > 0 && sums % counts == 0, source, "entry ", name, " has ", sums,
        " sums and ", counts, " counts");
}

ImportanceMatrix read_gguf_form(const std::shared_ptr<const MappedFile>& file,
                                const std::string& source) {
  const GgufContents contents = read_gguf(file);
  ImportanceMatrix out;
  const Metadata& metadata = contents.metadata;
  if (const auto names = metadata.get_strings(kDatasets)) {
    out.datasets.assign(names->begin(), names->end());
  }
  out.chunks = metadata.get_i64(kChunkCount).value_or(0);
  out.chunk_size = metadata.get_i64(kChunkSize).value_or(0);
  check(out.chunks >= 0 && out.chunk_size > 0, source, kChunkSize, " is ", out.chunk_size, " and ",
        kChunkCount, " ", out.chunks, "; is this an importance matrix?");
  for (const TensorEntry& tensor : contents.tensors) {
    std::string name = tensor.name;
    for (const std::string_view suffix : {kSums, kCounts}) {
      if (!name.ends_with(suffix)) continue;
      name.resize(name.size() - suffix.size());
      ImportanceEntry& entry = out.entries[name];
      (suffix == kSums ? entry.sums : entry.counts) = floats_of(tensor, source);
      break;
    }
  }
  return out;
}

// The older form, field by field.
class DatReader {
 public:
  DatReader(std::span<const std::byte> bytes, const std::string& source)
      : left_(bytes), source_(source) {}

  bool at_end() const { return left_.empty(); }
  int64_t integer(std::string_view what, int64_t least) {
    int32_t value = 0;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    check(value >= least, source_, what, " is ", value, "; wanted at least ", least);
    return value;
  }
  std::string text(std::string_view what) {
    const auto bytes = take(static_cast<size_t>(integer(what, 0)), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<float> floats(size_t count, std::string_view what) {
    check(count <= left_.size() / sizeof(float), source_, what, " are ", count, ", and ",
          left_.size(), " bytes are left in the file");
    std::vector<float> values(count);
    const auto bytes = take(count * sizeof(float), what);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  std::span<const std::byte> take(size_t count, std::string_view what) {
    check(count <= left_.size(), source_, what, " takes ", count, " bytes, and ", left_.size(),
          " are left in the file; is this an importance matrix?");
    const auto bytes = left_.first(count);
    left_ = left_.subspan(count);
    return bytes;
  }

  std::span<const std::byte> left_;
  const std::string& source_;
};

ImportanceMatrix read_dat_form(const MappedFile& file, const std::string& source) {
  DatReader reader(file.bytes(), source);
  ImportanceMatrix out;
  const int64_t entries = reader.integer("the number of entries", 1);
  for (int64_t i = 0; i < entries; ++i) {
    const std::string name = reader.text("the length of an entry's name");
    const int64_t calls = reader.integer("an entry's number of calls", 1);
    const int64_t values = reader.integer("an entry's number of values", 1);
    ImportanceEntry& entry = out.entries[name];
    check(entry.sums.empty(), source, "entry ", name, " occurs twice");
    entry.sums = reader.floats(static_cast<size_t>(values), "an entry's values");
    entry.counts = {static_cast<float>(calls)};
  }
  // Files of the first years end here.
  if (!reader.at_end()) out.chunks = reader.integer("the number of chunks", 0);
  if (!reader.at_end()) out.datasets.push_back(reader.text("the length of the text's name"));
  return out;
}

float largest(const std::vector<float>& values) {
  return *std::ranges::max_element(values);
}

void put(OutputFile& file, int64_t value, std::string_view what) {
  check(value <= INT32_MAX, file.path().string(), what, " is ", value, ", above ", INT32_MAX);
  const auto small = static_cast<int32_t>(value);
  file.write(std::as_bytes(std::span(&small, 1)));
}

void put(OutputFile& file, std::string_view text) {
  put(file, static_cast<int64_t>(text.size()), "the length of a name");
  file.write(std::as_bytes(std::span(text)));
}

void write_dat_form(const ImportanceMatrix& matrix, const std::filesystem::path& path) {
  OutputFile file(path);
  const auto used = [](const auto& each) { return largest(each.second.counts) > 0; };
  put(file, std::ranges::count_if(matrix.entries, used), "the number of entries");
  const auto unit = static_cast<float>(std::max<int64_t>(matrix.chunk_size, 1));
  for (const auto& each : matrix.entries) {
    if (!used(each)) continue;
    const auto& [name, entry] = each;
    const float calls = std::ceil(largest(entry.counts) / unit);
    put(file, name);
    put(file, static_cast<int64_t>(calls), "an entry's number of calls");
    put(file, static_cast<int64_t>(entry.sums.size()), "an entry's number of values");
    std::vector<float> values = entry.sums;
    const size_t columns = values.size() / entry.counts.size();
    for (size_t i = 0; i < values.size(); ++i) {
      const float count = entry.counts[i / columns];
      values[i] = (count > 0 ? values[i] / count : 1.0f) * calls;
    }
    file.write(std::as_bytes(std::span(values)));
  }
  put(file, matrix.chunks, "the number of chunks");
  put(file, matrix.datasets.empty() ? std::string() : matrix.datasets.back());
  file.finish();
}

void write_gguf_form(const ImportanceMatrix& matrix, const std::filesystem::path& path) {
  const std::string source = path.string();
  const auto number = [&](const char* key, int64_t value) {
    check(value >= 0 && value <= UINT32_MAX, source, key, " would be ", value);
    return static_cast<uint32_t>(value);
  };
  GgufWriter writer;
  writer.set_string("general.type", "imatrix");
  writer.set_strings(kDatasets, matrix.datasets);
  writer.set_u32(kChunkCount, number(kChunkCount, matrix.chunks));
  writer.set_u32(kChunkSize, number(kChunkSize, std::max<int64_t>(matrix.chunk_size, 1)));
  for (const auto& [name, entry] : matrix.entries) {
    const auto matrices = static_cast<int64_t>(entry.counts.size());
    const int64_t columns = static_cast<int64_t>(entry.sums.size()) / matrices;
    writer.add_tensor(cat(name, kSums), DType::f32, Shape{matrices, columns});
    writer.add_tensor(cat(name, kCounts), DType::f32, Shape{matrices, 1});
  }
  writer.begin(path);
  for (const auto& [name, entry] : matrix.entries) {
    writer.write(std::as_bytes(std::span(entry.sums)));
    writer.write(std::as_bytes(std::span(entry.counts)));
  }
  writer.finish();
}

// Makes room for one count of each matrix.
void spread(std::vector<float>& counts, size_t matrices) {
  if (counts.size() == 1) counts.resize(matrices, counts.front());
}

}  // namespace

std::vector<float> ImportanceMatrix::importance(const std::string& name, int64_t matrices,
                                                int64_t columns) const {
  const auto found = entries.find(name);
  if (found == entries.end()) return {};
  const auto& [sums, counts] = found->second;
  const auto values = static_cast<int64_t>(sums.size());
  check((values == columns || values == matrices * columns), "imatrix", "entry ", name, " has ",
        values, " values; the model has ", matrices, " matrices of ", columns, " columns");
  std::vector<float> out(sums.size());
  const size_t width = sums.size() / counts.size();
  for (size_t i = 0; i < out.size(); ++i) {
    const float count = counts[i / width];
    out[i] = count > 0 ? sums[i] / count : 1.0f;
  }
  return out;
}

void ImportanceMatrix::add(const ImportanceMatrix& other) {
  const bool older = other.chunk_size == 0;
  const auto unit = static_cast<float>(older ? std::max<int64_t>(chunk_size, 1) : 1);
  for (const auto& [name, theirs] : other.entries) {
    ImportanceEntry& ours = entries[name];
    if (ours.sums.empty()) {
      ours.sums.resize(theirs.sums.size());
      ours.counts.resize(theirs.counts.size());
    }
    check(ours.sums.size() == theirs.sums.size(), "imatrix", "entry ", name, " has ",
          ours.sums.size(), " sums in one matrix and ", theirs.sums.size(), " in another");
    std::vector<float> counts = theirs.counts;
    spread(ours.counts, counts.size());
    spread(counts, ours.counts.size());
    check(ours.counts.size() == counts.size(), "imatrix", "entry ", name, " has ",
          ours.counts.size(), " counts in one matrix and ", counts.size(), " in another");
    for (size_t i = 0; i < counts.size(); ++i) ours.counts[i] += counts[i] * unit;
    for (size_t i = 0; i < ours.sums.size(); ++i) ours.sums[i] += theirs.sums[i] * unit;
  }
  datasets.insert(datasets.end(), other.datasets.begin(), other.datasets.end());
  chunks += other.chunks;
}

ImportanceMatrix read_importance(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const std::string source = path.string();
  uint32_t magic = 0;
  const auto bytes = file->bytes();
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  ImportanceMatrix out =
      magic == kGgufMagic ? read_gguf_form(file, source) : read_dat_form(*file, source);
  check(!out.entries.empty(), source, "has no entries; is this an importance matrix?");
  for (const auto& [name, entry] : out.entries) {
    check_sizes(source, name, entry);
    check_values(source, name, "the sum", entry.sums);
    check_values(source, name, "the count", entry.counts);
  }
  return out;
}

void write_importance(const ImportanceMatrix& matrix, const std::filesystem::path& path,
                      ImportanceFormat format) {
  check(!matrix.entries.empty(), path.string(), "the importance matrix has no entries");
  if (format == ImportanceFormat::dat) return write_dat_form(matrix, path);
  write_gguf_form(matrix, path);
}

}  // namespace rbee::io

// What is declared and not there yet says so as every other error does.
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

class LaterRpcsTest : public ServiceTest {
 protected:
  static void ExpectNamed(const grpc::Status& status, const std::string& method) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(ErrorInfoOf(status).reason(), "NOT_IMPLEMENTED");
    EXPECT_EQ(ErrorInfoOf(status).metadata().at("method"), method);
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(method));
  }
};

TEST_F(LaterRpcsTest, AreUnimplementedWithAnErrorInfo) {
  StartCoordinator();
  v1::ListAuditRecordsResponse audit;
  ExpectNamed(cluster_->ListAuditRecords(Context().get(), {}, &audit), "ListAuditRecords");
  const auto context = Context();
  const auto journal = cluster_->CaptureJournal(context.get(), {});
  v1::CaptureJournalResponse response;
  EXPECT_FALSE(journal->Read(&response));
  ExpectNamed(journal->Finish(), "CaptureJournal");
}

}  // namespace
}  // namespace mega::service

import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.PaymentsApi;
import org.openapitools.client.api.RefundsApi;
import org.openapitools.client.model.CardInput;
import org.openapitools.client.model.CreatePaymentBody;
import org.openapitools.client.model.CreateRefundBody;
import org.openapitools.client.model.ErrorBody;
import org.openapitools.client.model.Payment;
import org.openapitools.client.model.PaymentList;
import org.openapitools.client.model.PersonInput;
import org.openapitools.client.model.Refund;

/**
 * Uses the Java client that openapi-generator makes from the OpenAPI document. It reads PAYMENTS_BASE_URL and
 * PAYMENTS_API_KEY, and prints a line for each step.
 */
public class GeneratedClient {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(System.getenv("PAYMENTS_BASE_URL"));
        client.setBearerToken(System.getenv("PAYMENTS_API_KEY"));
        PaymentsApi payments = new PaymentsApi(client);
        RefundsApi refunds = new RefundsApi(client);

        Payment payment = payments.createPayment(order("4242 4242 4242 4242"), "paid");
        System.out.println("create: " + payment.getStatus() + " " + payment.getAmountMinor() + " "
            + payment.getCurrency());
        Payment again = payments.createPayment(order("4242 4242 4242 4242"), "paid");
        System.out.println("create again: " + again.getId().equals(payment.getId()));

        try {
            payments.createPayment(order("4000 0000 0000 0002"), "declined");
        } catch (ApiException declined) {
            ErrorBody body = ErrorBody.fromJson(declined.getResponseBody());
            System.out.println("decline: " + body.getError().getCode() + " "
                + body.getError().getPayment().getStatus() + " " + body.getError().getAdvice());
        }

        PaymentList page = payments.listPayments(10, null, null, null, null, null, null, null, null, null, null, null, null, null);
        System.out.println("list: " + page.getData().size() + " "
            + page.getData().get(0).getStatus() + " " + page.getHasMore());

        Refund refund = refunds.refundPayment(
            payment.getId(), null, new CreateRefundBody().amount(500L));
        System.out.println("refund: " + refund.getStatus() + " " + refund.getAmountMinor() + " "
            + refund.getPaymentStatus());
    }

    private static CreatePaymentBody order(String number) {
        return new CreatePaymentBody()
            .amountMinor(1999L)
            .currency("EUR")
            .payer(new PersonInput().email("ada@example.com"))
            .card(new CardInput().number(number).expMonth(12).expYear(2034).cvc("123"));
    }
}

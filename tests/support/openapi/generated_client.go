// Command generated_client uses the Go client that oapi-codegen makes from the OpenAPI document. It
// reads PAYMENTS_BASE_URL and PAYMENTS_API_KEY, and prints a line for each step.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"generated_client/payments"
)

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("PAYMENTS_API_KEY"))
		return nil
	}
	client, err := payments.NewClientWithResponses(
		os.Getenv("PAYMENTS_BASE_URL"), payments.WithRequestEditorFn(authorize))
	if err != nil {
		log.Fatal(err)
	}

	paid, err := client.CreatePaymentWithResponse(ctx, keyed("paid"), order("4242 4242 4242 4242"))
	if err != nil || paid.JSON201 == nil {
		log.Fatal(err, string(paid.Body))
	}
	payment := paid.JSON201
	fmt.Println("create:", payment.Status, payment.AmountMinor, payment.Currency)
	again, err := client.CreatePaymentWithResponse(ctx, keyed("paid"), order("4242 4242 4242 4242"))
	if err != nil || again.JSON201 == nil {
		log.Fatal(err, string(again.Body))
	}
	fmt.Println("create again:", again.JSON201.Id == payment.Id)

	declined, err := client.CreatePaymentWithResponse(
		ctx, keyed("declined"), order("4000 0000 0000 0002"))
	if err != nil || declined.JSONDefault == nil {
		log.Fatal(err, string(declined.Body))
	}
	refusal := declined.JSONDefault.Error
	fmt.Println("decline:", refusal.Code, refusal.Payment.Status, *refusal.Advice)

	limit := 10
	page, err := client.ListPaymentsWithResponse(ctx, &payments.ListPaymentsParams{Limit: &limit})
	if err != nil || page.JSON200 == nil {
		log.Fatal(err, string(page.Body))
	}
	fmt.Println("list:", len(page.JSON200.Data), page.JSON200.Data[0].Status, page.JSON200.HasMore)

	amount := int64(500)
	refunded, err := client.RefundPaymentWithResponse(ctx, payment.Id,
		&payments.RefundPaymentParams{}, payments.CreateRefundBody{Amount: &amount})
	if err != nil || refunded.JSON201 == nil {
		log.Fatal(err, string(refunded.Body))
	}
	refund := refunded.JSON201
	fmt.Println("refund:", refund.Status, refund.AmountMinor, refund.PaymentStatus)
}

func keyed(name string) *payments.CreatePaymentParams {
	return &payments.CreatePaymentParams{IdempotencyKey: &name}
}

func order(number string) payments.CreatePaymentBody {
	amount, month, year, cvc, email := int64(1999), 12, 2034, "123", "ada@example.com"
	return payments.CreatePaymentBody{
		AmountMinor: &amount,
		Currency:    "EUR",
		Payer:       &payments.PersonInput{Email: &email},
		Card:        &payments.CardInput{Number: &number, ExpMonth: &month, ExpYear: &year, Cvc: &cvc},
	}
}

// S3 as the transfer manager of Go does it: commands on standard input, one answer a line.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	managertypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

type client struct {
	s3      *s3.Client
	manager *transfermanager.Client
	bucket  *string
}

func fromEnvironment(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
	}, nil
}

// Trusts the certificate of the file that AWS_CA_BUNDLE names.
func trusting() *http.Client {
	path := os.Getenv("AWS_CA_BUNDLE")
	if path == "" {
		return http.DefaultClient
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func connect(endpoint, bucket string, partSize int64) *client {
	service := s3.New(s3.Options{
		BaseEndpoint:     &endpoint,
		Region:           "us-east-1",
		UsePathStyle:     true,
		Credentials:      aws.CredentialsProviderFunc(fromEnvironment),
		HTTPClient:       trusting(),
		RetryMaxAttempts: 1,
	})
	manager := transfermanager.New(service, func(options *transfermanager.Options) {
		options.PartSizeBytes = partSize
		options.MultipartUploadThreshold = partSize
	})
	return &client{service, manager, &bucket}
}

func (c *client) carryOut(words []string) error {
	ctx, key := context.Background(), &words[1]
	switch words[0] {
	case "upload":
		file, err := os.Open(words[2])
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = c.manager.UploadObject(ctx, &transfermanager.UploadObjectInput{
			Bucket: c.bucket, Key: key, Body: file,
			StorageClass: managertypes.StorageClass(words[3]),
		})
		return err
	case "download":
		file, err := os.Create(words[2])
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = c.manager.DownloadObject(ctx, &transfermanager.DownloadObjectInput{
			Bucket: c.bucket, Key: key, WriterAt: file,
		})
		return err
	case "restore":
		_, err := c.s3.RestoreObject(ctx, &s3.RestoreObjectInput{
			Bucket: c.bucket, Key: key,
			RestoreRequest: &types.RestoreRequest{
				Days:                 aws.Int32(1),
				GlacierJobParameters: &types.GlacierJobParameters{Tier: types.TierStandard},
			},
		})
		return err
	case "delete":
		_, err := c.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: c.bucket, Key: key})
		return err
	}
	return fmt.Errorf("unknown command %q", words[0])
}

func answer(err error) string {
	var refused smithy.APIError
	if err == nil {
		return "ok"
	}
	if errors.As(err, &refused) {
		return refused.ErrorCode()
	}
	return strings.SplitN(err.Error(), "\n", 2)[0]
}

// Takes the endpoint, a bucket and the size of parts.
func main() {
	partSize, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	c := connect(os.Args[1], os.Args[2], partSize)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(answer(c.carryOut(strings.Split(lines.Text(), "\t"))))
	}
}
